#include "onebit/data/batches/pair_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/base/temporary_folder.h"
#include "tests/batches/all_pairs.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

class PairWalkTest : public ::testing::Test {
 protected:
  // The last document is long enough for several visits at every length tried.
  PairWalkTest() {
    std::vector<corpus::SampleDocument> documents = corpus::sample_documents(60, 3);
    documents.emplace_back(1500, 12);
    store_ = corpus::make_store(folder_ / "store", documents);
  }

  TemporaryFolder folder_;
  std::shared_ptr<const corpus::TokenStore> store_;
};

TEST_F(PairWalkTest, UsesEverySentenceOnce) {
  for (const int64_t length : {8, 64, 128, 512}) {
    const PairWalkOptions options{.pairs = {.sequence_length = length}, .epoch_seed = 5};
    TextPlace next;
    for (const Pair& pair : all_pairs(*store_, options)) {
      ASSERT_EQ(pair.a_begin, next);
      ASSERT_LT(pair.a_begin, pair.a_end);
      ASSERT_EQ(pair.document, store_->document_of(pair.a_begin.sentence));
      ASSERT_LE(pair.b_end, TextPlace{store_->document_begin(pair.document + 1)});
      ASSERT_TRUE(pair.random_next || pair.a_end < pair.b_end);
      next = pair.random_next ? pair.a_end : pair.b_end;
    }
    EXPECT_EQ(next, TextPlace{store_->sentences()});
  }
}

TEST_F(PairWalkTest, ChunksEndAtTheirTarget) {
  const PairWalkOptions options{.pairs = {}, .epoch_seed = 6};
  int full = 0;
  for (const Pair& pair : all_pairs(*store_, options)) {
    ASSERT_GE(pair.target, 2);
    ASSERT_LE(pair.target, 125);
    const auto tokens = [&](uint64_t end) {
      return static_cast<int64_t>(store_->sentence_begin(end) -
                                  store_->sentence_begin(pair.a_begin.sentence));
    };
    const uint64_t chunk = pair.b_end.sentence - pair.a_begin.sentence;
    // Without its last sentence the chunk is short of the target.
    ASSERT_TRUE(chunk == 1 || tokens(pair.b_end.sentence - 1) < pair.target);
    full += tokens(pair.b_end.sentence) >= pair.target;
    ASSERT_EQ(pair.could_continue, chunk > 1);
    ASSERT_TRUE(chunk > 1 || pair.random_next);
  }
  EXPECT_GT(full, 100);
}

TEST_F(PairWalkTest, WithoutNextSentenceAChunkIsOneRun) {
  for (const int64_t length : {8, 64, 128, 512}) {
    const PairWalkOptions options{.pairs = {.sequence_length = length, .next_sentence = false},
                                  .epoch_seed = 5};
    TextPlace next;
    int longest = 0;
    for (const Pair& pair : all_pairs(*store_, options)) {
      ASSERT_EQ(pair.a_begin, next);
      ASSERT_EQ(pair.document, store_->document_of(pair.a_begin.sentence));
      ASSERT_LE(pair.b_end, TextPlace{store_->document_begin(pair.document + 1)});
      ASSERT_EQ(pair.a_end, pair.b_end);
      ASSERT_FALSE(pair.random_next);
      ASSERT_LE(pair.target, length - 2);
      longest += pair.target == length - 2;
      next = pair.a_end;
    }
    EXPECT_EQ(next, TextPlace{store_->sentences()});
    EXPECT_GT(longest, 0);
  }
}

TEST_F(PairWalkTest, EpochsCutDifferently) {
  const std::vector<Pair> first = all_pairs(*store_, {.pairs = {}, .epoch_seed = 7});
  const std::vector<Pair> again = all_pairs(*store_, {.pairs = {}, .epoch_seed = 7});
  const std::vector<Pair> other = all_pairs(*store_, {.pairs = {}, .epoch_seed = 8});
  ASSERT_EQ(first.size(), again.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), again.begin(), same));
  const auto count = std::min(first.size(), other.size());
  int equal = 0;
  for (size_t i = 0; i < count; ++i) equal += same(first[i], other[i]);
  EXPECT_LT(equal, static_cast<int>(count) / 2);
}

// Bounds are six standard deviations.
TEST_F(PairWalkTest, HalfOfTheChunksGetARandomNext) {
  double chunks = 0, random = 0, all = 0, all_random = 0;
  for (uint64_t seed = 100; seed < 130; ++seed) {
    for (const Pair& pair : all_pairs(*store_, {.pairs = {}, .epoch_seed = seed})) {
      all += 1;
      all_random += pair.random_next;
      if (!pair.could_continue) continue;
      chunks += 1;
      random += pair.random_next;
    }
  }
  EXPECT_NEAR(random, chunks / 2, 6 * std::sqrt(chunks) / 2);
  EXPECT_GT(all_random / all, 0.5);
}

TEST(PairWalk, OneVisitInTenHasAShortTarget) {
  const TemporaryFolder folder;
  // Documents of one visit each.
  const auto store =
      corpus::make_store(folder / "store", std::vector<corpus::SampleDocument>(2000, {5, 5}));
  double visits = 0, shorter = 0, sum = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    uint64_t document = UINT64_MAX;
    for (const Pair& pair : all_pairs(*store, {.pairs = {}, .epoch_seed = seed})) {
      if (pair.document == document) continue;
      document = pair.document;
      visits += 1;
      shorter += pair.target < 125;
      sum += pair.target < 125 ? static_cast<double>(pair.target) : 0;
    }
  }
  // A short target is uniform in [2, 125], so one in 124 is 125 itself.
  const double share = 0.1 * 123 / 124;
  EXPECT_NEAR(shorter, visits * share, 6 * std::sqrt(visits * share * (1 - share)));
  // Uniform in [2, 124]: mean 63, standard deviation sqrt((123^2 - 1) / 12) = 35.5.
  EXPECT_NEAR(sum / shorter, 63, 6 * 35.5 / std::sqrt(shorter));
}

}  // namespace
}  // namespace onebit::batches
