#include "onebit/data/corpus/word_counts.h"

#include <gtest/gtest.h>

#include <map>

#include "onebit/ground/base/philox.h"

namespace onebit::corpus {
namespace {

// The words have few hashes, so that different words meet in the table.
TEST(WordCounts, CountAsAMapDoes) {
  RandomSequence random(2, 1, 0);
  WordCounts counts, others;
  std::map<std::string, uint64_t> expected;
  for (int i = 0; i < 20000; ++i) {
    std::string word;
    for (uint32_t n = random.below(4); n > 0; --n) {
      word.push_back(static_cast<char>(random.below(20)));
    }
    const uint64_t times = random.below(3);
    (i % 2 == 0 ? counts : others).add(word, (word.size() * 7) << 8, times);
    expected[word] += times;
  }
  counts.add(others);
  ASSERT_EQ(counts.size(), expected.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(counts.count(i), expected.at(std::string(counts.word(i))));
  }
}

}  // namespace
}  // namespace onebit::corpus
