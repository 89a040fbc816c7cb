// What a vocabulary shows about the text it was learnt from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onebit::formats {

enum class CasingEvidence {
  kCased,    // at least one word of a hundred has a capital: text was not lower-cased
  kUncased,  // there are words in Latin letters and none has a capital
  kUnclear,
};

// Looks at ASCII letters; tokens in brackets ("[CLS]", "[unused1]") say nothing.
CasingEvidence casing_of(const std::vector<std::string>& vocabulary);

}  // namespace onebit::formats
