// Canonical decomposition and ordering (Unicode Standard Annex 15) of a word with rare marks. Most
// words do without: their marks are accents that vanish whatever their order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onebit/text/characters.h"

namespace onebit::text {

// A code point and the bytes of the raw word it comes from.
struct AlignedCharacter {
  char32_t code_point;
  uint32_t begin, end;
};

// Overwrites `result` with the uncased form of `raw`, aligned as Hugging Face aligns it: in the
// order of the result, the first code point of every decomposition takes the place of the next
// character of `raw`, and the others share it. Unicode is that of version 9, which the reference's
// normalisation knows.
void decompose_in_order(std::string_view raw, const Characters& characters,
                        std::vector<AlignedCharacter>& result);

}  // namespace onebit::text
