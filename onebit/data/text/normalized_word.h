// A word in the form in which WordPiece looks it up, and the origin of its characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/canonical_order.h"
#include "onebit/data/text/characters.h"

namespace onebit::text {

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

}  // namespace onebit::text
