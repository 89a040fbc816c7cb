// What a vocabulary shows about the text it was learnt from.
#pragma once

#include "onebit/text/vocabulary.h"

namespace onebit::text {

enum class CasingEvidence {
  kCased,    // at least one word of a hundred has a capital: text was not lower-cased
  kUncased,  // there are words in Latin letters and none has a capital
  kUnclear,
};

// Looks at ASCII letters; tokens in brackets ("[CLS]", "[unused1]") say nothing.
CasingEvidence casing_of(const Vocabulary& vocabulary);

}  // namespace onebit::text
