// Canonical decomposition and ordering (Unicode Standard Annex 15) of a word with rare marks. Most
// words do not need it: their marks are accents that are removed regardless of their order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onebit/data/text/characters.h"

namespace onebit::text {

// A code point and the range of bytes in the raw word that it comes from.
struct AlignedCharacter {
  char32_t code_point;
  uint32_t begin, end;
};

// Overwrites `result` with the uncased form of `raw`, aligned as in Hugging Face's `tokenizers`: in
// the order of the result, the first code point of every decomposition takes the place of the next
// character of `raw`, and the others share it. Uses Unicode version 9, like the reference's
// normalisation.
void decompose_in_order(std::string_view raw, const Characters& characters,
                        std::vector<AlignedCharacter>& result);

}  // namespace onebit::text
