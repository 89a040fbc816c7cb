// Byte-pair encoding (Sennrich, Haddow and Birch 2016): learns which adjacent symbols are joined.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace onebit::corpus {

// Byte-pair encoding over counted words: joins the most frequent pair of adjacent symbols until
// there are enough symbols. Counts are updated incrementally. Only words with the pair are visited.
class PairMerger {
 public:
  using Pair = std::pair<int32_t, int32_t>;

  // `symbols` are the initial ones. The ones that continue a word begin with `continuing_prefix`. A
  // pair that occurs fewer than `least_count` times is not joined.
  PairMerger(std::vector<std::string> symbols, uint64_t least_count,
             std::string continuing_prefix = "##");

  // A word as symbol numbers. Words must be added before run().
  void add_word(std::span<const int32_t> symbols, uint64_t count);

  // Joins pairs until there are `most_symbols` symbols or no pair is left to join. Among equally
  // frequent pairs, the one with the smaller left symbol, then the smaller right symbol, is first.
  // Returns the symbols, new ones in the order of joining.
  std::vector<std::string> run(size_t most_symbols);
  // The pairs of symbols that run() has joined, in this order.
  const std::vector<Pair>& merges() const { return merges_; }

 private:
  struct Word {
    size_t begin;
    uint32_t size;
    uint64_t count;
  };
  struct PairCount {
    int64_t count = 0;
    bool changed = false;
    std::vector<uint32_t> words;  // may contain a word twice, or one without the pair by now
  };
  struct Candidate {
    int64_t count;
    uint64_t pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static uint64_t key(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  void count_pairs();
  int32_t joined_symbol(int32_t left, int32_t right);
  void join(uint64_t pair);
  void join_in_word(uint32_t word, int32_t left, int32_t right, int32_t joined);
  void add_pair(int32_t left, int32_t right, uint32_t word);
  void remove_pair(int32_t left, int32_t right, uint32_t word);
  void queue_changed();

  std::vector<std::string> symbols_;
  std::unordered_map<std::string, int32_t> symbol_ids_;
  int64_t least_count_;
  std::string continuing_prefix_;
  std::vector<Pair> merges_;
  std::vector<int32_t> text_;  // the symbols of all words
  std::vector<Word> words_;
  std::unordered_map<uint64_t, PairCount> pairs_;
  std::vector<uint64_t> changed_;  // pairs that gained occurrences since the last queue_changed
  std::priority_queue<Candidate> queue_;
};

}  // namespace onebit::corpus
