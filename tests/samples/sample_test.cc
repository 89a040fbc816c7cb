#include "onebit/data/samples/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/samples/golden_samples.h"

namespace onebit::samples {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kPad = 0, kCls = 2, kSep = 3, kMask = 4;

// [CLS] 7 [MASK] [SEP] 8 9 [SEP], padded to 9.
PaddedSample pair() {
  return {.input_ids = {kCls, 7, kMask, kSep, 8, 9, kSep, kPad, kPad},
          .segment_ids = {0, 0, 0, 0, 1, 1, 1, 0, 0},
          .input_mask = {1, 1, 1, 1, 1, 1, 1, 0, 0},
          .masked_lm_positions = {2, 5, 0},
          .masked_lm_ids = {11, 12, 0},
          .masked_lm_weights = {1, 1, 0},
          .next_sentence = 1,
          .place = "a.hdf5: row 3"};
}

Sample taken(const PaddedSample& padded) {
  SampleChecker checker(golden_vocabulary(), "vocab.txt");
  Sample sample;
  checker.take(padded, sample);
  return sample;
}

template <typename Edit>
std::string after(const Edit& edit) {
  PaddedSample padded = pair();
  edit(padded);
  return message_of([&] { taken(padded); });
}

TEST(SampleChecker, LeavesPaddingOut) {
  const std::string expected = "tokens 2 7 4 3 8 9 3 first 4 masked 2 5 ids 11 12 label 1";
  EXPECT_EQ(in_words(taken(pair())), expected);
  PaddedSample bare = pair();
  bare.input_mask.clear();
  bare.masked_lm_weights.clear();
  EXPECT_EQ(in_words(taken(bare)), expected);
}

TEST(SampleChecker, SortsMaskedWords) {
  PaddedSample padded = pair();
  padded.masked_lm_positions = {5, 2, 0};
  const Sample sample = taken(padded);
  EXPECT_THAT(sample.masked_positions, ElementsAre(2, 5));
  EXPECT_THAT(sample.masked_ids, ElementsAre(12, 11));
}

TEST(SampleChecker, ASampleMayHaveOneTextAndNoLabel) {
  PaddedSample padded = pair();
  padded.input_ids[3] = 10;
  padded.segment_ids.assign(9, 0);
  padded.next_sentence.reset();
  const Sample sample = taken(padded);
  EXPECT_EQ(sample.first_part, 7);
  EXPECT_EQ(sample.next_sentence, kNoLabel);
}

TEST(SampleChecker, RefusesArraysThatDoNotBelongTogether) {
  EXPECT_THAT(after([](PaddedSample& sample) { sample.segment_ids.pop_back(); }),
              AllOf(HasSubstr("a.hdf5: row 3: segment_ids has 8"), HasSubstr("input_ids has 9")));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_mask.pop_back(); }),
              HasSubstr("input_mask has 8"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_ids.pop_back(); }),
              HasSubstr("masked_lm_ids has 2"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_weights.pop_back(); }),
              HasSubstr("masked_lm_weights has 2"));
}

TEST(SampleChecker, RefusesAnotherVocabularysIds) {
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_ids[4] = 60; }),
              AllOf(HasSubstr("input_ids has 60 at position 4"), HasSubstr("60 tokens"),
                    HasSubstr("--vocab")));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_ids[4] = -1; }), HasSubstr("has -1"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_ids[1] = 0; }),
              HasSubstr("masked_lm_ids has [PAD], id 0"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_ids[1] = 60; }),
              HasSubstr("masked_lm_ids has 60 at 1"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_ids[0] = 9; }),
              AllOf(HasSubstr("begins with id 9 (w9)"), HasSubstr("[CLS]")));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_ids[6] = 9; }),
              AllOf(HasSubstr("ends with id 9 (w9)"), HasSubstr("[SEP]")));
}

TEST(SampleChecker, RefusesWhatCannotBeAMask) {
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_mask[3] = 0; }),
              HasSubstr("input_mask has 1 at position 4, after a 0"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_mask[8] = 2; }),
              HasSubstr("input_mask has 2 at position 8, and it must have only 1 (a token) and 0"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_mask.assign(9, 2); }),
              HasSubstr("input_mask has 2 at position 0, and it must have only 1 (a token) and 0"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.input_mask.assign(9, 0); }),
              HasSubstr("has 0 tokens"));
}

TEST(SampleChecker, RefusesSegmentsThatAreNoPair) {
  EXPECT_THAT(after([](PaddedSample& sample) { sample.segment_ids[5] = 0; }),
              HasSubstr("segment_ids has 0 at position 5"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.segment_ids[6] = 2; }),
              HasSubstr("segment_ids has 2 at position 6"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.segment_ids.assign(9, 1); }),
              HasSubstr("segment_ids begins with 1"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.segment_ids[3] = 1; }),
              HasSubstr("first text ends with id 4 at position 2"));
}

TEST(SampleChecker, RefusesMaskedWordsThatCannotBe) {
  for (const int64_t position : {-1, 0, 6, 7, 9}) {
    EXPECT_THAT(after([&](PaddedSample& sample) { sample.masked_lm_positions[1] = position; }),
                HasSubstr(fmt::format("masked_lm_positions has {} at 1", position)));
  }
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_positions[1] = 2; }),
              HasSubstr("masked_lm_positions has 2 twice"));
  EXPECT_THAT(after([](PaddedSample& sample) { sample.masked_lm_weights[0] = 0.5f; }),
              HasSubstr("masked_lm_weights has 0.5"));
  EXPECT_THAT(after([](PaddedSample& sample) {
                sample.masked_lm_weights.clear();
                sample.masked_lm_positions = {2, 0, 5};
              }),
              HasSubstr("masked_lm_positions has 5 at 2, after the 0"));
}

TEST(SampleChecker, RefusesALabelThatIsNone) {
  EXPECT_THAT(after([](PaddedSample& sample) { sample.next_sentence = 2; }),
              HasSubstr("next_sentence_labels is 2"));
}

// The right [CLS] and [SEP] with another [MASK] are detected after enough samples.
TEST(SampleChecker, NoticesAnotherMask) {
  SampleChecker checker(golden_vocabulary(), "vocab.txt");
  PaddedSample padded = pair();
  padded.input_ids[2] = 20;
  Sample sample;
  for (int i = 0; i < 99; ++i) checker.take(padded, sample);
  checker.finish();  // too few samples to decide
  checker.take(padded, sample);
  EXPECT_THAT(message_of([&] { checker.finish(); }),
              AllOf(HasSubstr("of 200 masked words, 0.0 %"), HasSubstr("[MASK], id 4")));
}

// Google's script writes such samples with whole-word masks.
TEST(SampleChecker, LeavesOutSamplesWithoutAMaskedWord) {
  const text::Vocabulary& vocabulary = golden_vocabulary();
  SampleChecker checker(vocabulary, "vocab.txt");
  PaddedSample unmasked = pair();
  unmasked.masked_lm_weights = {0, 0, 0};
  Sample sample;
  EXPECT_FALSE(checker.take(unmasked, sample));
  EXPECT_TRUE(checker.take(pair(), sample));
  EXPECT_FALSE(checker.take(unmasked, sample));
  EXPECT_EQ(checker.without_masks(), 2);
  EXPECT_EQ(checker.first_without_masks(), unmasked.place);
}

}  // namespace
}  // namespace onebit::samples
