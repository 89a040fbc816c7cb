#include "onebit/apps/squad/features.h"

#include <gtest/gtest.h>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "tests/base/message_of.h"
#include "tests/squad/dataset_json.h"
#include "tests/squad/golden_run.h"

namespace onebit::squad {
namespace {

using dataset_json::file_of;
using dataset_json::question;

std::string tokens_of(const Features& features, const Window& window) {
  batches::Batch rows;
  rows.sequence_starts = {0};
  features.append(window, 0, rows);
  std::string text;
  for (const int32_t id : rows.tokens) {
    if (!text.empty()) text += ' ';
    text += vocabulary()->token(id);
  }
  return text;
}

class FeaturesGolden : public GoldenRun {};

TEST_P(FeaturesGolden, WindowsLabelsAndContextsAreThePublishedOnes) {
  const Dataset data = dataset(Use::kTrain);
  const Features features = features_of(data, options(Use::kTrain));
  const Json& questions = run_.at("questions");
  ASSERT_EQ(data.questions.size(), questions.size());
  int64_t without_answer = 0;
  for (size_t q = 0; q < questions.size(); ++q) {
    const Json& windows = questions[q].at("windows");
    ASSERT_EQ(features.first_window(q + 1) - features.first_window(q), windows.size());
    for (size_t w = 0; w < windows.size(); ++w) {
      const Window& window = features.windows()[features.first_window(q) + w];
      EXPECT_EQ(tokens_of(features, window), windows[w].at("tokens").get<std::string>());
      const Json label =
          windows[w].at("label").is_null() ? Json::array({0, 0}) : windows[w].at("label");
      without_answer += windows[w].at("label").is_null() ? 1 : 0;
      EXPECT_EQ(Json::array({window.start, window.end}), label) << data.questions[q].id << " " << w;
      std::string contexts;
      for (int64_t at = 0; at < features.length(window); ++at) {
        contexts += features.has_max_context(window, at) ? '1' : '0';
      }
      EXPECT_EQ(contexts, windows[w].at("max_context").get<std::string>());
    }
  }
  FeatureOptions dropping = options(Use::kTrain);
  dropping.without_answer = WindowsWithoutAnswer::kDrop;
  const Features kept = features_of(data, dropping);
  EXPECT_EQ(kept.windows_dropped(), without_answer);
  EXPECT_EQ(kept.windows().size() + static_cast<size_t>(without_answer), features.windows().size());
}

INSTANTIATE_TEST_SUITE_P(Runs, FeaturesGolden, testing::Values(0, 1));

TEST(Features, CutsLongQuestions) {
  const Dataset data = dataset_from_json(
      file_of("It is here.", {question("a", {{"here", 6}}, "one two three four five six")}), "f",
      Use::kTrain);
  const Features features =
      features_of(data, {.max_sequence_length = 16, .max_question_length = 3});
  EXPECT_EQ(features.questions_cut(), 1);
  EXPECT_EQ(tokens_of(features, features.windows().at(0)),
            "[CLS] one two three [SEP] it is here . [SEP]");
  EXPECT_EQ(features.windows()[0].start, 7);
}

TEST(Features, UnanswerableQuestionsPointToCls) {
  std::vector<Json> questions = {question("a", {{"here", 6}}), question("b", {})};
  questions[1]["is_impossible"] = true;
  const Dataset data = dataset_from_json(file_of("It is here.", questions), "f", Use::kTrain);
  const Features features = features_of(data, {});
  ASSERT_EQ(features.windows().size(), 2u);
  EXPECT_GT(features.windows()[0].start, 0);
  EXPECT_EQ(features.windows()[1].start, 0);
  EXPECT_EQ(features.windows()[1].end, 0);
}

TEST(Features, RefusesSizesWithoutRoom) {
  const Dataset data =
      dataset_from_json(file_of("It.", {question("a", {{"It", 0}})}), "f", Use::kTrain);
  for (const FeatureOptions& bad :
       {FeatureOptions{.max_sequence_length = 67}, FeatureOptions{.doc_stride = 0},
        FeatureOptions{.max_question_length = 0}}) {
    EXPECT_NE(message_of([&] { features_of(data, bad); }), "(no error)");
  }
}

std::shared_ptr<const text::Vocabulary> other_vocabulary(const std::string& kind) {
  const Path file =
      Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/pipelines" / kind / "tokenizer.json";
  return std::make_shared<const text::Vocabulary>(
      text::Vocabulary::from_parts(formats::read_tokenizer_with(file).vocabulary, file.string()));
}

// Tokenizers that are no WordPiece: where the labels point are exactly the answer's characters.
TEST(Features, OtherTokenizersFindTheAnswersCharacters) {
  const std::string context = "It is (1895-1943), in the caf\u00E9s of the north; so it is.";
  const std::vector<std::pair<std::string, int64_t>> answers = {
      {"1895", 7}, {"caf\u00E9s of the north", 26}, {"It", 0}, {"is", 53}};
  for (const char* kind : {"unigram", "bytes", "byte-fallback"}) {
    std::vector<Json> questions;
    for (const auto& answer : answers) {
      questions.push_back(question(answer.first, {answer}, "Which is it?"));
    }
    const Dataset data = dataset_from_json(file_of(context, questions), "f", Use::kTrain);
    ASSERT_EQ(data.questions.size(), answers.size());
    const auto vocabulary = other_vocabulary(kind);
    const Features features(data, vocabulary, text::Casing::kCased, {.max_sequence_length = 256});
    ASSERT_EQ(features.windows().size(), answers.size()) << kind;
    for (size_t i = 0; i < answers.size(); ++i) {
      const Window& window = features.windows()[i];
      const ContextPiece* first = features.piece_at(window, window.start);
      const ContextPiece* last = features.piece_at(window, window.end);
      ASSERT_TRUE(first != nullptr && last != nullptr) << kind;
      const std::string found = context.substr(first->begin, last->end - first->begin);
      // A token can be longer than the answer, and no token less is enough.
      EXPECT_NE(found.find(answers[i].first), std::string::npos) << kind << ": " << found;
      EXPECT_LE(found.size(), answers[i].first.size() + 4) << kind << ": " << found;
    }
  }
}

TEST(Features, OtherTokenizersWriteThePairAsTheirFileSays) {
  const Dataset data =
      dataset_from_json(file_of("It is here.", {question("a", {{"here", 6}})}), "f", Use::kTrain);
  const auto vocabulary = other_vocabulary("bytes");
  const Features features(data, vocabulary, text::Casing::kCased, {.max_sequence_length = 128});
  const Window& window = features.windows().at(0);
  batches::Batch rows;
  rows.sequence_starts = {0};
  features.append(window, 0, rows);
  std::vector<int32_t> question_ids, context_ids;
  text::Tokenizer tokenizer(vocabulary, text::Casing::kCased);
  tokenizer.encode("What is it?", question_ids);
  tokenizer.encode("It is here.", context_ids);
  std::vector<int32_t> expected = {vocabulary->cls_id()};
  expected.insert(expected.end(), question_ids.begin(), question_ids.end());
  expected.insert(expected.end(), 2, vocabulary->sep_id());
  expected.insert(expected.end(), context_ids.begin(), context_ids.end());
  expected.push_back(vocabulary->sep_id());
  EXPECT_EQ(rows.tokens, expected);
  EXPECT_EQ(rows.segments, std::vector<int32_t>(expected.size(), 0));
  EXPECT_EQ(static_cast<size_t>(features.length(window)), expected.size());
  EXPECT_EQ(features.context_begin(window), static_cast<int64_t>(question_ids.size()) + 3);
}

}  // namespace
}  // namespace onebit::squad
