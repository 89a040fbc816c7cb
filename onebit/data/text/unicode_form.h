// The normal forms of Unicode (Unicode Standard Annex 15).
#pragma once

#include "onebit/data/text/normalized_text.h"

namespace onebit::text {

// Canonical or compatibility decomposition, without and with composition.
enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// Writes `from` in this form to `to`. As the normalisation of `tokenizers`, it knows the characters
// of Unicode 9; later ones stay as they are.
void write_in_form(const NormalizedText& from, UnicodeForm form, NormalizedText& to);

}  // namespace onebit::text
