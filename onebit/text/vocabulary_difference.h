// How two vocabularies differ.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/text/vocabulary.h"

namespace onebit::text {

struct VocabularyDifference {
  int32_t first_id = 0;  // at which they have different tokens, or where the shorter one ends
  int32_t ids = 0;       // with different tokens, or in the longer one alone
};

// None where they are equal.
std::optional<VocabularyDifference> difference(const Vocabulary& a, const Vocabulary& b);

}  // namespace onebit::text
