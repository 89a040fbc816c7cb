// Sentences that are longer than a sequence, and those that are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "onebit/data/batches/batch_stream.h"
#include "tests/batches/stream_sequences.h"

namespace onebit::batches {
namespace {

// The same for several lengths, the least of which is exactly the longest sentence's (30
// tokens): no such sentence is cut into pieces.
TEST_F(BatchStreamTest, StoresOfShortSentencesKeepTheirSamples) {
  const auto digest = [&](int64_t length, bool next_sentence) {
    BatchStreamOptions options{.seed = 77, .micro_batch = 500};
    options.pairs = {.sequence_length = length, .next_sentence = next_sentence};
    uint64_t sum = 0;
    for (const auto& [sample, sequence] : collect({{store_}}, options, 0, 2)) {
      const auto add = [&](const std::vector<int32_t>& values) {
        for (const int32_t value : values) {
          sum = sum * 6364136223846793005ull + static_cast<uint64_t>(value) + 1;
        }
      };
      add({sequence.next_sentence});
      add(sequence.tokens);
      add(sequence.masked_positions);
    }
    return sum;
  };
  EXPECT_EQ(digest(33, true), 3577009201526632160u);
  EXPECT_EQ(digest(128, true), 13330554746270106310u);
  EXPECT_EQ(digest(512, true), 860850610275474836u);
  EXPECT_EQ(digest(32, false), 15747820396984874804u);
  EXPECT_EQ(digest(128, false), 9342940443463012274u);
}

// A text without sentence ends: an epoch reads nearly all of it, and a few epochs read every token.
TEST_F(BatchStreamTest, ReadsAllOfSentencesThatAreLongerThanASequence) {
  const auto store = corpus::make_store(folder_ / "long", {{5000}, {700, 12, 900}, {2000}}, 40000);
  for (const bool next_sentence : {true, false}) {
    for (const int64_t length : {16, 128, 512}) {
      BatchStreamOptions options{.seed = 12, .micro_batch = 1};
      options.pairs = {.sequence_length = length, .next_sentence = next_sentence};
      options.masks.max_predictions = 80;
      BatchStream stream({{store}}, options);
      std::set<int32_t> in_epoch, ever;
      std::set<int32_t> continuing;
      const uint64_t epoch = stream.first_epoch_examples();
      for (const auto& [sample, sequence] :
           collect({{store}}, options, 0, static_cast<int>(8 * epoch))) {
        const std::vector<int32_t> text = sequence.text();
        ASSERT_LE(static_cast<int64_t>(text.size()), length);
        for (size_t i = 0; i < text.size(); ++i) {
          if (text[i] < corpus::kFirstWord) continue;
          ever.insert(text[i]);
          const bool counts = sequence.segments[i] == 0 || sequence.next_sentence == 0;
          if (sample < epoch && counts) in_epoch.insert(text[i]);
        }
        continuing.insert(sequence.next_sentence);
      }
      const auto all = static_cast<double>(store->tokens());
      const std::string which = fmt::format("{} {}", length, next_sentence);
      EXPECT_EQ(ever.size(), store->tokens()) << which;
      EXPECT_GT(static_cast<double>(in_epoch.size()), 0.95 * all) << which;
      EXPECT_EQ(continuing.size(), next_sentence ? 2u : 1u);
      // The figure of the index is what was counted, with next_sentence nearly.
      const EpochFigures figures = stream.figures().front();
      EXPECT_EQ(figures.tokens, store->tokens());
      EXPECT_EQ(figures.cut_tokens, store->tokens() - 12) << which;
      EXPECT_NEAR(figures.read_share(), static_cast<double>(in_epoch.size()) / all,
                  next_sentence ? 0.03 : 0.0)
          << which;
      EXPECT_EQ(figures.examples, epoch);
    }
  }
}

TEST_F(BatchStreamTest, ResumesInsideALongSentence) {
  const auto store = corpus::make_store(folder_ / "long", {{9000}, {3000, 12, 900}}, 40000);
  for (const bool next_sentence : {true, false}) {
    BatchStreamOptions options{.seed = 13, .micro_batch = 7};
    options.pairs = {.sequence_length = 32, .next_sentence = next_sentence};
    BatchStream unbroken({{store}}, options);
    const uint64_t epoch = unbroken.first_epoch_examples();
    for (const uint64_t samples : {uint64_t{1}, epoch - 3, epoch, 5 * epoch / 2}) {
      BatchStream resumed({{store}}, options, unbroken.marks(samples));
      EXPECT_EQ(resumed.indexes_built(), 0);
      EXPECT_EQ(resumed.figures().front().tokens, store->tokens());
      EXPECT_EQ(resumed.indexes_built(), 1);  // of the current epoch
      Batch one, other;
      for (uint64_t step = 0; step < epoch / 7; ++step) {
        unbroken.build(samples + 7 * step, 0, one);
        resumed.build(samples + 7 * step, 0, other);
        ASSERT_EQ(sequences_of(other), sequences_of(one)) << samples << " " << step;
      }
    }
  }
}

TEST_F(BatchStreamTest, ARandomSecondTextIsOfAnotherDocument) {
  const auto store = corpus::make_store(folder_ / "two", {{3000}, {2000}}, 40000);
  BatchStreamOptions options{.seed = 14, .micro_batch = 300};
  int random = 0;
  for (const auto& [sample, sequence] : collect({{store}}, options, 0, 2)) {
    const std::vector<int32_t> text = sequence.text();
    const auto middle =
        static_cast<size_t>(std::find(text.begin(), text.end(), kSep) - text.begin());
    const bool a_in_first = text[1] - corpus::kFirstWord < 3000;
    const bool b_in_first = text[middle + 1] - corpus::kFirstWord < 3000;
    ASSERT_EQ(a_in_first != b_in_first, sequence.next_sentence == 1);
    random += sequence.next_sentence;
  }
  EXPECT_GT(random, 200);
}

}  // namespace
}  // namespace onebit::batches
