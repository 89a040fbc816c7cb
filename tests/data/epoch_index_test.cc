#include "onebit/data/epoch_index.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"
#include "tests/data/all_pairs.h"

namespace onebit::data {
namespace {

TEST(EpochIndex, FindsEveryPairOnceOnAnyNumberOfThreads) {
  const TemporaryFolder folder;
  std::vector<corpus::SampleDocument> documents = corpus::sample_documents(60, 3);
  documents.emplace_back(1500, 12);  // long enough for several visits
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
        const Pair pair = index.find(*store, i, &number);
        ASSERT_LT(number, pairs.size());
        ASSERT_TRUE(same(pair, pairs[number]));
        numbers.insert(number);
      }
      EXPECT_EQ(numbers.size(), pairs.size());
    }
  }
}

}  // namespace
}  // namespace onebit::data
