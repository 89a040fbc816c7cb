#include "onebit/data/batches/example_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/base/temporary_folder.h"
#include "tests/batches/all_pairs.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

TEST(EpochIndex, FindsEveryPairOnceOnAnyNumberOfThreads) {
  const TemporaryFolder folder;
  std::vector<corpus::SampleDocument> documents = corpus::sample_documents(60, 3);
  documents.emplace_back(1500, 12);    // long enough for several visits
  documents.push_back({7, 30000, 5});  // visits begin inside a sentence
  const auto store = corpus::make_store(folder / "store", documents);
  for (const int64_t length : {16, 128}) {
    const PairWalkOptions options{.pairs = {.sequence_length = length}, .epoch_seed = 9};
    const std::vector<Pair> pairs = all_pairs(*store, options);
    for (const int threads : {1, 3, 64}) {
      const EpochIndex index(*store, options, threads);
      ASSERT_EQ(index.examples(), pairs.size());
      std::set<uint64_t> numbers;
      for (uint64_t i = 0; i < index.examples(); ++i) {
        uint64_t number = 0;
        const Pair pair = index.find(*store, i, &number).next();
        ASSERT_LT(number, pairs.size());
        ASSERT_TRUE(same(pair, pairs[number]));
        numbers.insert(number);
      }
      EXPECT_EQ(numbers.size(), pairs.size());
    }
  }
}

// Exact without random second texts: what truncation drops from chunks that overflow.
TEST(EpochIndex, CountsTheTokensThatItsExamplesContain) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{100, 100, 100}, {126, 1}, {4}});
  const EpochIndex index(
      *store,
      {.pairs = {.sequence_length = 128, .short_sequence_probability = 0, .next_sentence = false},
       .epoch_seed = 1},
      1);
  // 100 + 100 lose 74. 126 + 1 are full at 126, and 1 is left.
  EXPECT_EQ(index.examples(), 5u);
  EXPECT_EQ(index.figures().tokens, 431u);
  EXPECT_EQ(index.figures().read_tokens, 431u - 74);
  EXPECT_EQ(index.figures().cut_tokens, 0u);
  EXPECT_EQ(index.figures().parts, 6u);
  EXPECT_EQ(index.figures().could_continue, 0u);
}

TEST(EpochIndex, CountsTheContinuationsThatAreThere) {
  const TemporaryFolder folder;
  const auto of = [&](const char* name, const std::vector<corpus::SampleDocument>& documents) {
    const auto store = corpus::make_store(folder / name, documents);
    return EpochIndex(*store, {.pairs = {}, .epoch_seed = 2}, 2).figures();
  };
  const EpochFigures single = of("single", std::vector<corpus::SampleDocument>(50, {12}));
  EXPECT_EQ(single.examples, 50u);
  EXPECT_EQ(single.could_continue, 0u);
  EXPECT_EQ(single.continue_text, 0u);
  // Sentences that fill a sequence have no room for another. With one token more there are pieces.
  EXPECT_EQ(of("full", std::vector<corpus::SampleDocument>(50, {125, 125})).could_continue, 0u);
  EXPECT_GT(of("over", std::vector<corpus::SampleDocument>(50, {126, 126})).could_continue, 90u);
  const EpochFigures several = of("several", std::vector<corpus::SampleDocument>(200, {12, 9}));
  EXPECT_GT(several.could_continue, 180u);  // one visit in ten has a short target
  EXPECT_NEAR(static_cast<double>(several.continue_text),
              static_cast<double>(several.could_continue) / 2, 6 * std::sqrt(200.0) / 2);
}

}  // namespace
}  // namespace onebit::batches
