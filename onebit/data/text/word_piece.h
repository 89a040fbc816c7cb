// Greedy longest match of a word against a vocabulary, over a byte trie.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onebit/data/text/pieces.h"
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
  static constexpr uint32_t kWordRoot = 0, kContinuationRoot = 1;

  PieceTrie trie_;
  int32_t unknown_id_;
};

}  // namespace onebit::text
