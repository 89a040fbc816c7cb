// Learns a WordPiece vocabulary from text: words are split into characters, then the most frequent
// adjacent pair is merged repeatedly (byte-pair encoding, Sennrich et al. 2016, with "##" on pieces
// that continue a word, as in Hugging Face's WordPieceTrainer).
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/casing.h"

namespace onebit::text {

// Byte-pair encoding over counted words: joins the most frequent pair of adjacent symbols until
// there are enough symbols. Counts are updated incrementally; only words with the pair are visited.
class PairMerger {
 public:
  // `symbols` are the initial ones; "##" marks those that continue a word. A pair that occurs fewer
  // than `least_count` times is not joined.
  PairMerger(std::vector<std::string> symbols, uint64_t least_count);

  // A word as symbol numbers. Words must be added before run().
  void add_word(std::span<const int32_t> symbols, uint64_t count);

  // Joins pairs until there are `most_symbols` symbols or no pair is left to join. Among equally
  // frequent pairs, the one with the smaller left symbol, then the smaller right symbol, is first.
  // Returns the symbols, new ones in the order of joining.
  std::vector<std::string> run(size_t most_symbols);

 private:
  struct Word {
    size_t begin;
    uint32_t size;
    uint64_t count;
  };
  struct Pair {
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
  std::vector<int32_t> text_;  // the symbols of all words
  std::vector<Word> words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::vector<uint64_t> changed_;  // pairs that gained occurrences since the last queue_changed
  std::priority_queue<Candidate> queue_;
};

// Counts words. Each thread needs its own; merge() combines them.
class VocabularyTrainer {
 public:
  explicit VocabularyTrainer(Casing casing);
  ~VocabularyTrainer();
  VocabularyTrainer(VocabularyTrainer&&) noexcept;
  VocabularyTrainer& operator=(VocabularyTrainer&&) noexcept;

  // Special tokens in the text and bytes that are not UTF-8 are skipped.
  void add_text(std::string_view utf8);
  void merge(const VocabularyTrainer& other);

  // Returns the tokens in id order: [PAD] [UNK] [CLS] [SEP] [MASK], the characters, the characters
  // with "##", then the merged pieces in the order found. The result depends only on the words and
  // their counts, not on the order of the text nor on `threads`. It has fewer than `vocab_size`
  // tokens if no pair is left that occurs twice. Of more than 1000 characters the most frequent are
  // kept, and words with any other are left out. Errors: no text, a size without room for the
  // special tokens and characters.
  std::vector<std::string> train(int32_t vocab_size, int threads) const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::text
