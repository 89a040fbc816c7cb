#include "onebit/data/corpus/pair_merger.h"

#include <gtest/gtest.h>

#include <map>

#include "onebit/ground/base/philox.h"

namespace onebit::corpus {
namespace {

struct CountedWord {
  std::vector<int32_t> symbols;
  uint64_t count;
};

// The same, but counts all pairs again before every merge.
std::vector<std::string> naive_merge(std::vector<std::string> symbols,
                                     std::vector<CountedWord> words, uint64_t least_count,
                                     size_t most_symbols) {
  while (symbols.size() < most_symbols) {
    std::map<std::pair<int32_t, int32_t>, uint64_t> counts;
    for (const CountedWord& word : words) {
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
      }
    }
    std::pair<int32_t, int32_t> best;
    uint64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (count > most) best = pair, most = count;
    }
    if (most < least_count || most == 0) break;
    std::string joined = symbols[static_cast<size_t>(best.first)] +
                         symbols[static_cast<size_t>(best.second)].substr(2);
    const auto known = std::find(symbols.begin(), symbols.end(), joined);
    const int32_t id = static_cast<int32_t>(known - symbols.begin());
    if (known == symbols.end()) symbols.push_back(joined);
    for (CountedWord& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.symbols.size(); ++i) {
        const bool found = i + 1 < word.symbols.size() && word.symbols[i] == best.first &&
                           word.symbols[i + 1] == best.second;
        merged.push_back(found ? id : word.symbols[i]);
        i += found ? 1 : 0;
      }
      word.symbols = merged;
    }
  }
  return symbols;
}

TEST(PairMerger, EqualsCountingAnew) {
  for (uint32_t round = 0; round < 40; ++round) {
    RandomSequence random(5, round, 0);
    const uint32_t letters = 2 + random.below(4);
    std::vector<std::string> symbols;
    for (uint32_t i = 0; i < letters; ++i) symbols.emplace_back(1, static_cast<char>('a' + i));
    for (uint32_t i = 0; i < letters; ++i) symbols.push_back("##" + symbols[i]);
    std::vector<CountedWord> words;
    for (int w = 0; w < 30; ++w) {
      CountedWord word{{}, 1 + random.below(9)};
      for (uint32_t n = 1 + random.below(9); n > 0; --n) {
        const int32_t letter = static_cast<int32_t>(random.below(letters));
        word.symbols.push_back(word.symbols.empty() ? letter
                                                    : letter + static_cast<int32_t>(letters));
      }
      words.push_back(word);
    }
    const uint64_t least_count = 1 + random.below(4);
    const size_t most = symbols.size() + random.below(60);
    PairMerger merger(symbols, least_count);
    for (const CountedWord& word : words) merger.add_word(word.symbols, word.count);
    EXPECT_EQ(merger.run(most), naive_merge(symbols, words, least_count, most)) << round;
  }
}

}  // namespace
}  // namespace onebit::corpus
