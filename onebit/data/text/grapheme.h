// Grapheme clusters (Unicode Standard Annex 29): what a reader sees as one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace onebit::text {

// The bytes of the cluster at the front of a text that begins with one. `utf8` is not empty.
// Without the rule for Indic conjuncts (GB9c), whose clusters have six bytes and more.
size_t grapheme_bytes(std::string_view utf8);

}  // namespace onebit::text
