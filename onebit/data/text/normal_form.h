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

  // UTF-8. Empty when nothing of the word remains.
  const std::string& text() const { return text_; }
  int64_t characters() const { return static_cast<int64_t>(characters_.size()); }
  // The byte range of `raw` that bytes [begin, end) of text() come from. Both are character
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

// A text in a normal form, and the origin of its bytes in the text as it was written.
class NormalizedText {
 public:
  using Range = NormalizedWord::Range;

  // Without origins raw_range() must not be called, and everything else is faster.
  explicit NormalizedText(bool has_origins = true) : has_origins_(has_origins) {}

  void clear();
  // The text as it is written, whose first byte is at byte `at` of the original. Bytes that are not
  // UTF-8 become U+FFFD. Below 4 GiB.
  void assign(std::string_view raw, size_t at = 0);
  // The normal form of BERT's normaliser: white space becomes a blank, and an ideograph stands
  // between two blanks. The rest is the words' normal form.
  void assign(std::string_view raw, const Characters& characters);

  // Appends text that comes from the bytes `origin`.
  void add(std::string_view text, Range origin) {
    text_.append(text);
    if (has_origins_) origins_.resize(text_.size(), origin);
  }
  // Appends bytes [begin, end) of another text, with their origins.
  void add(const NormalizedText& other, size_t begin, size_t end) {
    text_.append(other.text_, begin, end - begin);
    if (has_origins_) {
      const auto first = other.origins_.begin();
      origins_.insert(origins_.end(), first + static_cast<ptrdiff_t>(begin),
                      first + static_cast<ptrdiff_t>(end));
    }
  }

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  bool has_origins() const { return has_origins_; }
  // The origin of one byte.
  Range origin(size_t byte) const { return has_origins_ ? origins_[byte] : Range{}; }
  // The byte range of the original text that bytes [begin, end) of text() come from, begin < end.
  Range raw_range(size_t begin, size_t end) const {
    return {origins_[begin].begin, origins_[end - 1].end};
  }

 private:
  void add_word(std::string_view raw, uint32_t at, const Characters& characters);

  bool has_origins_;
  std::string text_;
  std::vector<Range> origins_;  // by byte
  NormalizedWord word_;
};

// Writes a text anew, character by character, and gives each the origin that Hugging Face's
// `tokenizers` gives it (NormalizedString::transform).
class Rewriting {
 public:
  // `to` must be empty.
  Rewriting(const NormalizedText& from, NormalizedText& to) : from_(from), to_(to) {}

  // Appends a character. `change` 0: it takes the place of the next character. 1: it is inserted
  // behind the one before. -n: it takes the place of the next one, and n more are left out.
  void put(std::string_view character, int change);

 private:
  const NormalizedText& from_;
  NormalizedText& to_;
  size_t at_ = 0;
};

}  // namespace onebit::text
