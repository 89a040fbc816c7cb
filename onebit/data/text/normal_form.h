// The normal form of words and texts, in which WordPiece and added tokens are looked up, and the
// origin of its characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/characters.h"

namespace onebit::text {

// A code point and the range of bytes in the raw word that it comes from.
struct AlignedCharacter {
  char32_t code_point;
  uint32_t begin, end;
};

// Canonical decomposition and ordering (Unicode Standard Annex 15) of a word with rare marks. Most
// words do not need it: their marks are accents that are removed regardless of their order.
// Overwrites `result` with the uncased form of `raw`, aligned as in Hugging Face's `tokenizers`: in
// the order of the result, the first code point of every decomposition takes the place of the next
// character of `raw`, and the others share it. Uses Unicode version 9, like the reference's
// normalisation.
void decompose_in_order(std::string_view raw, const Characters& characters,
                        std::vector<AlignedCharacter>& result);

class NormalizedWord {
 public:
  // Normalises `raw`: a run of letters and dropped characters, or a kSingle (word_scanner.h).
  void assign(std::string_view raw, const Characters& characters);

  // UTF-8; empty when nothing of the word remains.
  const std::string& text() const { return text_; }
  int64_t characters() const { return static_cast<int64_t>(characters_.size()); }
  // The byte range of `raw` that bytes [begin, end) of text() come from; both are character
  // boundaries, and begin < end.
  struct Range {
    uint32_t begin, end;
  };
  Range raw_range(size_t begin, size_t end) const;

 private:
  std::string text_;
  std::vector<AlignedCharacter> characters_;
  std::vector<size_t> text_begins_;  // by character
};

// A whole text in the normal form of BERT's normaliser, and the origin of its bytes. Added tokens
// are looked for in it, since they may be more than a word.
class NormalizedText {
 public:
  // White space becomes a blank, and an ideograph stands between two blanks, as in Hugging Face's
  // BertNormalizer; the rest is the words' normal form. `raw` must be below 4 GiB.
  void assign(std::string_view raw, const Characters& characters);

  const std::string& text() const { return text_; }
  // The byte range of the raw text that bytes [begin, end) of text() come from; begin < end.
  NormalizedWord::Range raw_range(size_t begin, size_t end) const {
    return {origins_[begin].begin, origins_[end - 1].end};
  }

 private:
  void add(std::string_view text, NormalizedWord::Range origin);
  void add_word(std::string_view raw, uint32_t at, const Characters& characters);

  std::string text_;
  std::vector<NormalizedWord::Range> origins_;  // by byte
  NormalizedWord word_;
};

}  // namespace onebit::text
