// Explains, word by word, how a text was tokenized.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::text {

struct Piece;

enum class WordOutcome {
  kSpecialToken,  // the exact spelling of a special token
  kAddedToken,    // a token that the tokenizer has beside the vocabulary's
  kWhole,         // a token of the vocabulary
  kPieces,        // several tokens, longest match from the left
  kNoMatch,       // [UNK]: at some position no token fits
  kTooLong,       // [UNK]: more characters than WordPiece accepts
  kVanished,      // only accents, controls or bytes that are not UTF-8: no token
};

struct ExplainedWord {
  uint32_t begin, end;     // bytes of the original text that belong to this word
  std::string normalized;  // as it was looked up
  std::vector<Piece> pieces;
  WordOutcome outcome;
};

// A short clause for users, such as "longest match from the left".
std::string_view outcome_text(WordOutcome outcome);

}  // namespace onebit::text
