#include "onebit/data/corpus/repeated_substrings.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "onebit/ground/base/philox.h"

namespace onebit::corpus {
namespace {

// Counts every substring, and keeps those that no single character always follows.
std::map<std::u32string, uint64_t> counted(const std::vector<SpelledWord>& words, size_t longest) {
  std::map<std::u32string, uint64_t> counts;
  std::map<std::u32string, std::set<char32_t>> followers;
  for (const SpelledWord& word : words) {
    for (size_t begin = 0; begin < word.characters.size(); ++begin) {
      for (size_t size = 1; size <= longest && begin + size <= word.characters.size(); ++size) {
        const std::u32string part = word.characters.substr(begin, size);
        counts[part] += word.count;
        const size_t end = begin + size;
        const bool ends = size == longest || end == word.characters.size();
        followers[part].insert(ends ? U'\0' : word.characters[end]);
      }
    }
  }
  std::erase_if(counts, [&](const auto& one) {
    const std::set<char32_t>& next = followers.at(one.first);
    const bool goes_on = next.size() == 1 && *next.begin() != U'\0';
    return one.first.size() < 2 || one.second < 2 || goes_on;
  });
  return counts;
}

TEST(RepeatedSubstrings, AreThoseOfACountOfAll) {
  for (uint64_t round = 0; round < 200; ++round) {
    RandomSequence random(5, round, 0);
    std::vector<SpelledWord> words(1 + random.below(12));
    for (SpelledWord& word : words) {
      for (uint32_t n = 1 + random.below(12); n > 0; --n) {
        word.characters.push_back(U'a' + random.below(1 + static_cast<uint32_t>(round % 4)));
      }
      word.count = 1 + random.below(3);
    }
    const size_t longest = 2 + random.below(8);
    const RepeatedSubstrings repeated(words, longest);
    std::map<std::u32string, uint64_t> found;
    for (const auto& one : repeated.found()) {
      const bool is_new = found.emplace(repeated.text_of(one), one.count).second;
      EXPECT_TRUE(is_new) << "found twice in round " << round;
    }
    EXPECT_EQ(found, counted(words, longest)) << "round " << round;
  }
}

}  // namespace
}  // namespace onebit::corpus
