// Greedy longest match of a word against a vocabulary, over a byte trie.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

// A word longer than this many characters is [UNK].
inline constexpr int64_t kMaxWordCharacters = 100;

// A token and its end in the word.
struct WordPart {
  int32_t id;
  uint32_t end;
};

class WordPiece {
 public:
  explicit WordPiece(const Vocabulary& vocabulary);

  // Overwrites `parts` with the tokens of a normalised word: the longest one at the front, then the
  // longest "##" tokens of the rest. If no token fits at some position, the whole word is one
  // [UNK]. `word` is not empty.
  void split(std::string_view word, std::vector<WordPart>& parts) const;

 private:
  static constexpr uint32_t kWordRoot = 0, kContinuationRoot = 1, kNone = 0xFFFFFFFFu;

  // Transitions in an open-addressing table: (node, byte) to node.
  struct Edge {
    uint32_t key = kNone;
    uint32_t node = 0;
  };
  void reserve(uint64_t edges);
  size_t place(uint32_t key) const;
  void insert(std::string_view token, uint32_t root, int32_t id);

  std::vector<Edge> edges_;
  int shift_ = 0;
  std::vector<int32_t> accepted_;  // by node: the token that ends at it, or -1
  int32_t unknown_id_;
};

}  // namespace onebit::text
