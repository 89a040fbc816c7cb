#include "onebit/apps/squad/answer_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/squad/dataset_json.h"
#include "tests/squad/golden_run.h"

namespace onebit::squad {
namespace {

using dataset_json::file_of;
using dataset_json::question;

// The formula of the script that made the golden file.
void set_golden_logits(const Features& features, SpanLogits& logits) {
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

class AnswerDecoderGolden : public GoldenRun {};

TEST_P(AnswerDecoderGolden, AnswersAreThePublishedOnes) {
  const Dataset data = dataset(Use::kPredict);
  const Features features = features_of(data, options(Use::kPredict));
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

INSTANTIATE_TEST_SUITE_P(Runs, AnswerDecoderGolden, testing::Values(0, 1));

class AnswerDecoder : public testing::Test {
 protected:
  AnswerDecoder()
      : data_(
            dataset_from_json(file_of("It is (here) now.", {question("a", {}), question("b", {})}),
                              "f", Use::kPredict)),
        features_(features_of(data_, {.use = Use::kPredict})),
        logits_(features_) {}

  // [CLS] what is it ? [SEP] it is ( here ) now . [SEP]: "it" is at 6.
  void say(size_t window, int64_t start, int64_t end, float value) {
    logits_.of(window)[2 * static_cast<size_t>(start)] += value;
    logits_.of(window)[2 * static_cast<size_t>(end) + 1] += value;
  }

  Dataset data_;
  Features features_;
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
  logits_.of(1)[2 * 7 + 1] = 4;  // ends before it starts
  say(1, 1, 2, 20);              // is in the question
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
  // The null answer is included even if it is not among the best.
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

}  // namespace
}  // namespace onebit::squad
