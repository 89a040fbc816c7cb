#include "onebit/data/squad_features.h"

#include <gtest/gtest.h>

#include <numeric>

#include "onebit/data/answer_decoder.h"
#include "onebit/data/answer_files.h"
#include "onebit/data/answer_projection.h"
#include "onebit/data/context_windows.h"
#include "onebit/data/span_stream.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/squad_json.h"

namespace onebit::data {
namespace {

using squad_json::file_of;
using squad_json::question;

std::shared_ptr<const text::Vocabulary> vocabulary() {
  static const auto loaded = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  return loaded;
}

SquadFeatures features_of(const SquadDataset& dataset, const SquadFeatureOptions& options) {
  return {dataset, vocabulary(), text::Casing::kUncased, options};
}

std::string tokens_of(const SquadFeatures& features, const SquadWindow& window) {
  PackedRows rows;
  rows.sequence_starts = {0};
  features.append(window, 0, rows);
  std::string text;
  for (const int32_t id : rows.tokens) {
    if (!text.empty()) text += ' ';
    text += vocabulary()->token(id);
  }
  return text;
}

// The formula of the script that made the golden file.
void set_golden_logits(const SquadFeatures& features, SpanLogits& logits) {
  for (size_t i = 0; i < features.windows().size(); ++i) {
    const size_t question = features.windows()[i].question;
    const size_t window = i - features.first_window(question);
    const auto values = logits.of(i);
    for (size_t at = 0; at < values.size(); ++at) {
      values[at] =
          static_cast<float>(
              (at / 2 * 7919 + window * 104729 + question * 1299709 + at % 2 * 15485863) % 1009) /
          64;
    }
  }
}

class SquadGolden : public testing::TestWithParam<size_t> {
 protected:
  SquadGolden()
      : golden_(read_json(Path(ONEBIT_SOURCE_DIR) / "tests/data/golden/squad_features.json")),
        run_(golden_.at("runs").at(GetParam())) {}

  SquadFeatureOptions options(SquadUse use) const {
    const Json& given = run_.at("options");
    return {.max_sequence_length = given.at("max_sequence_length"),
            .doc_stride = given.at("doc_stride"),
            .max_question_length = given.at("max_question_length"),
            .use = use,
            .without_answer = WindowsWithoutAnswer::kToCls,
            .threads = 2};
  }
  SquadDataset dataset(SquadUse use) const {
    return squad_from_json(golden_.at("dataset"), "golden", use);
  }

  Json golden_, run_;
};

TEST_P(SquadGolden, WindowsLabelsAndContextsAreThePublishedOnes) {
  const SquadDataset data = dataset(SquadUse::kTrain);
  const SquadFeatures features = features_of(data, options(SquadUse::kTrain));
  const Json& questions = run_.at("questions");
  ASSERT_EQ(data.questions.size(), questions.size());
  int64_t without_answer = 0;
  for (size_t q = 0; q < questions.size(); ++q) {
    const Json& windows = questions[q].at("windows");
    ASSERT_EQ(features.first_window(q + 1) - features.first_window(q), windows.size());
    for (size_t w = 0; w < windows.size(); ++w) {
      const SquadWindow& window = features.windows()[features.first_window(q) + w];
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
  SquadFeatureOptions dropping = options(SquadUse::kTrain);
  dropping.without_answer = WindowsWithoutAnswer::kDrop;
  const SquadFeatures kept = features_of(data, dropping);
  EXPECT_EQ(kept.windows_dropped(), without_answer);
  EXPECT_EQ(kept.windows().size() + static_cast<size_t>(without_answer), features.windows().size());
}

TEST_P(SquadGolden, AnswersAreThePublishedOnes) {
  const SquadDataset data = dataset(SquadUse::kPredict);
  const SquadFeatures features = features_of(data, options(SquadUse::kPredict));
  SpanLogits logits(features);
  set_golden_logits(features, logits);
  const auto answers =
      decode_answers(features, logits,
                     {.n_best = run_.at("options").at("n_best"),
                      .max_answer_length = run_.at("options").at("max_answer_length"),
                      .text = AnswerText::kProjection},
                     2);
  for (size_t q = 0; q < answers.size(); ++q) {
    const Json& wanted = run_.at("questions")[q].at("n_best");
    ASSERT_EQ(answers[q].best.size(), wanted.size()) << q;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const AnswerCandidate& found = answers[q].best[i];
      EXPECT_EQ(found.text, wanted[i][0].get<std::string>());
      EXPECT_DOUBLE_EQ(found.probability, wanted[i][1].get<double>());
      EXPECT_EQ(found.start_logit, wanted[i][2].get<double>());
      EXPECT_EQ(found.end_logit, wanted[i][3].get<double>());
    }
    EXPECT_EQ(answers[q].text, wanted[0][0].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, SquadGolden, testing::Values(0, 1));

TEST(ContextWindows, CoverTheParagraph) {
  EXPECT_TRUE(context_windows(0, 10, 5).empty());
  EXPECT_EQ(context_windows(10, 10, 5), (std::vector<ContextWindow>{{0, 10}}));
  EXPECT_EQ(context_windows(12, 10, 5), (std::vector<ContextWindow>{{0, 10}, {5, 7}}));
  EXPECT_EQ(context_windows(5, 2, 9), (std::vector<ContextWindow>{{0, 2}, {2, 2}, {4, 1}}));
  // Both windows have two tokens to the poorer side of token 7, the first is longer.
  EXPECT_EQ(max_context_window({{0, 10}, {5, 7}}, 7), 0u);
  EXPECT_EQ(max_context_window({{0, 10}, {5, 7}}, 8), 1u);
}

TEST(AnswerProjection, FindsTheOriginalText) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"steve smith", "Steve Smith's", "Steve Smith"},
      {"1895", "(1895-1943).", "1895"},
      {"cafe", "Caf\u00e9.", "Caf\u00e9"},
      {"don ' t", "don't", "don't"},
      {"u . s .", "U.S.", "U.S."},
      {"5", "$5.00", "5"},
      {"xyz", "abc", "abc"},
      {"istanbul", "\u0130stanbul", "\u0130stanbul"},
      {"", "abc", "abc"}};
  for (const auto& [predicted, original, answer] : cases) {
    EXPECT_EQ(project_answer(predicted, original, text::Casing::kUncased), answer);
  }
}

TEST(SquadFeatures, CutsLongQuestions) {
  const SquadDataset data = squad_from_json(
      file_of("It is here.", {question("a", {{"here", 6}}, "one two three four five six")}), "f",
      SquadUse::kTrain);
  const SquadFeatures features =
      features_of(data, {.max_sequence_length = 16, .max_question_length = 3});
  EXPECT_EQ(features.questions_cut(), 1);
  EXPECT_EQ(tokens_of(features, features.windows().at(0)),
            "[CLS] one two three [SEP] it is here . [SEP]");
  EXPECT_EQ(features.windows()[0].start, 7);
}

TEST(SquadFeatures, UnanswerableQuestionsPointToCls) {
  std::vector<Json> questions = {question("a", {{"here", 6}}), question("b", {})};
  questions[1]["is_impossible"] = true;
  const SquadDataset data =
      squad_from_json(file_of("It is here.", questions), "f", SquadUse::kTrain);
  const SquadFeatures features = features_of(data, {});
  ASSERT_EQ(features.windows().size(), 2u);
  EXPECT_GT(features.windows()[0].start, 0);
  EXPECT_EQ(features.windows()[1].start, 0);
  EXPECT_EQ(features.windows()[1].end, 0);
}

TEST(SquadFeatures, RefusesSizesWithoutRoom) {
  const SquadDataset data =
      squad_from_json(file_of("It.", {question("a", {{"It", 0}})}), "f", SquadUse::kTrain);
  for (const SquadFeatureOptions& bad :
       {SquadFeatureOptions{.max_sequence_length = 67}, SquadFeatureOptions{.doc_stride = 0},
        SquadFeatureOptions{.max_question_length = 0}}) {
    EXPECT_NE(message_of([&] { features_of(data, bad); }), "(no error)");
  }
}

class AnswerDecoder : public testing::Test {
 protected:
  AnswerDecoder()
      : data_(squad_from_json(file_of("It is (here) now.", {question("a", {}), question("b", {})}),
                              "f", SquadUse::kPredict)),
        features_(features_of(data_, {.use = SquadUse::kPredict})),
        logits_(features_) {}

  // [CLS] what is it ? [SEP] it is ( here ) now . [SEP]: "it" stands at 6.
  void say(size_t window, int64_t start, int64_t end, float value) {
    logits_.of(window)[2 * static_cast<size_t>(start)] += value;
    logits_.of(window)[2 * static_cast<size_t>(end) + 1] += value;
  }

  SquadDataset data_;
  SquadFeatures features_;
  SpanLogits logits_;
};

TEST_F(AnswerDecoder, CutsTextByOffsets) {
  ASSERT_EQ(features_.length(features_.windows()[0]), 14);
  say(0, 9, 9, 3);
  EXPECT_EQ(decode_answer(features_, logits_, 0, {}).text, "here");
  say(0, 8, 10, 4);
  EXPECT_EQ(decode_answer(features_, logits_, 0, {}).text, "(here)");
  // Longer than allowed.
  say(0, 6, 12, 5);
  EXPECT_EQ(decode_answer(features_, logits_, 0, {}).text, "It is (here) now.");
  EXPECT_EQ(decode_answer(features_, logits_, 0, {.max_answer_length = 3}).text, "(here)");
}

TEST_F(AnswerDecoder, TakesNothingThatIsNoStretchOfTheText) {
  logits_.of(1)[2 * 10] = 4;
  logits_.of(1)[2 * 7 + 1] = 4;  // ends before it begins
  say(1, 1, 2, 20);              // stands in the question
  say(1, 13, 13, 20);            // [SEP]
  logits_.of(1)[2 * 8] = 3;
  logits_.of(1)[2 * 9 + 1] = 3;
  EXPECT_EQ(decode_answer(features_, logits_, 1, {}).text, "(here");
}

TEST_F(AnswerDecoder, MayDecideThatThereIsNoAnswer) {
  const DecodeOptions options{.may_be_unanswerable = true, .null_threshold = 0};
  say(0, 9, 9, 3);
  say(0, 0, 0, 2);
  const DecodedAnswer answered = decode_answer(features_, logits_, 0, options);
  EXPECT_EQ(answered.text, "here");
  EXPECT_EQ(answered.null_odds, -2);
  EXPECT_EQ(answered.best.back().text.empty(), false);
  say(0, 0, 0, 2);
  const DecodedAnswer refused = decode_answer(features_, logits_, 0, options);
  EXPECT_EQ(refused.text, "");
  EXPECT_EQ(refused.null_odds, 2);
  EXPECT_EQ(refused.best.front().text, "");
  EXPECT_EQ(
      decode_answer(features_, logits_, 0, {.may_be_unanswerable = true, .null_threshold = 2}).text,
      "here");
  // The null answer is there even when it is not among the best.
  const DecodedAnswer few =
      decode_answer(features_, logits_, 1, {.n_best = 2, .may_be_unanswerable = true});
  const auto is_null = [](const AnswerCandidate& one) { return one.text.empty(); };
  EXPECT_TRUE(std::any_of(few.best.begin(), few.best.end(), is_null));
}

TEST_F(AnswerDecoder, GivesAnEmptyAnswerWhenNothingFits) {
  say(0, 0, 0, 9);
  say(0, 1, 1, 8);
  const DecodedAnswer answer = decode_answer(features_, logits_, 0, {.n_best = 2});
  EXPECT_EQ(answer.text, "");
  ASSERT_EQ(answer.best.size(), 1u);
  EXPECT_EQ(answer.best[0].probability, 1);
  EXPECT_EQ(decode_answer(features_, logits_, 0, {.n_best = 2, .may_be_unanswerable = true}).text,
            "");
}

TEST_F(AnswerDecoder, FilesAreThePublishedOnes) {
  TemporaryFolder folder;
  data_.problems = {{"left out", "why"}, {"a", "its id was given before"}};
  say(0, 9, 9, 3);
  const auto answers = decode_answers(features_, logits_, {.n_best = 1}, 1);
  write_answers({folder.path() / "p.json", folder.path() / "n.json", folder.path() / "o.json"},
                data_, answers);
  EXPECT_EQ(read_file(folder.path() / "p.json"),
            "{\n    \"a\": \"here\",\n    \"b\": \"\",\n    \"left out\": \"\"\n}\n");
  EXPECT_EQ(read_file(folder.path() / "o.json"), "{\n    \"a\": 0.0,\n    \"b\": 0.0\n}\n");
  const std::string n_best = read_file(folder.path() / "n.json");
  EXPECT_TRUE(n_best.starts_with(
      "{\n    \"a\": [\n        {\n            \"text\": \"here\",\n            \"probability\": "
      "1.0,\n            \"start_logit\": 3.0,\n            \"end_logit\": 3.0\n        }\n    ]"))
      << n_best;
  EXPECT_EQ(predictions_of(data_, answers).at("left out"), "");
}

class SpanStreamTest : public testing::Test {
 protected:
  SpanStreamTest() {
    std::vector<Json> questions;
    for (int i = 0; i < 23; ++i) {
      questions.push_back(question(fmt::format("q{}", i), {{"here", 6}},
                                   std::string(static_cast<size_t>(1 + i % 7), '?')));
    }
    data_ = squad_from_json(file_of("It is here, and there, and here again.", questions), "f",
                            SquadUse::kTrain);
  }

  SquadDataset data_;
};

TEST_F(SpanStreamTest, AStepHoldsTheSameWindowsForAnyRanks) {
  const SquadFeatures features = features_of(data_, {});
  const auto windows_of_step = [&](int world, int64_t micro, int64_t accumulation) {
    std::vector<uint32_t> windows;
    std::vector<int64_t> rows;
    for (int rank = 0; rank < world; ++rank) {
      const SpanStream stream(features, {.seed = 5,
                                         .world_size = world,
                                         .rank = rank,
                                         .micro_batch = micro,
                                         .accumulation = accumulation});
      SpanBatch batch;
      for (int64_t step = 0; step < accumulation; ++step) {
        stream.build(16, step, batch);
        EXPECT_EQ(batch.sequences(), micro);
        EXPECT_EQ(batch.spans.size(), 2 * batch.windows.size());
        for (size_t i = 0; i < batch.windows.size(); ++i) {
          const SquadWindow& window = features.windows()[batch.windows[i]];
          EXPECT_EQ(batch.spans[i], window.start);
          EXPECT_EQ(batch.spans[batch.windows.size() + i], window.end);
        }
        windows.insert(windows.end(), batch.windows.begin(), batch.windows.end());
        rows.push_back(batch.rows());
      }
    }
    // Work is even: no part has more than one longest question's tokens above another.
    EXPECT_LE(
        *std::max_element(rows.begin(), rows.end()) - *std::min_element(rows.begin(), rows.end()),
        7);
    std::sort(windows.begin(), windows.end());
    return windows;
  };
  const auto one = windows_of_step(1, 8, 1);
  EXPECT_EQ(one, windows_of_step(1, 2, 4));
  EXPECT_EQ(one, windows_of_step(2, 2, 2));
  EXPECT_EQ(one, windows_of_step(4, 2, 1));
}

TEST_F(SpanStreamTest, AnEpochSeesEveryWindowOnce) {
  const SquadFeatures features = features_of(data_, {});
  const SpanStream stream(features, {.seed = 5, .micro_batch = 1});
  SpanBatch batch;
  std::vector<uint32_t> first, second;
  for (uint64_t sample = 0; sample < 46; ++sample) {
    stream.build(sample, 0, batch);
    (sample < 23 ? first : second).push_back(batch.windows.at(0));
  }
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    std::vector<uint32_t> all(23);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(*epoch, all);
  }
}

TEST_F(SpanStreamTest, ASweepSeesEveryWindowOnceOverAllRanks) {
  const SquadFeatures features = features_of(data_, {});
  std::vector<uint32_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    const SpanSweep sweep(features, 4, 3, rank);
    SpanBatch batch;
    std::vector<uint32_t> own;
    for (int64_t i = 0; i < sweep.batches(); ++i) {
      sweep.build(i, batch);
      own.insert(own.end(), batch.windows.begin(), batch.windows.end());
    }
    EXPECT_EQ(sweep.windows_of(rank), own);
    seen.insert(seen.end(), own.begin(), own.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint32_t> all(23);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(seen, all);
}

}  // namespace
}  // namespace onebit::data
