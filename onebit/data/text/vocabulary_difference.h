// How two vocabularies differ.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

struct VocabularyDifference {
  int32_t first_id = 0;  // first id with different tokens, or the end of the shorter vocabulary
  int32_t ids = 0;       // number of ids with different tokens or only in the longer vocabulary
};

// Returns nothing if they are equal.
std::optional<VocabularyDifference> difference(const Vocabulary& a, const Vocabulary& b);

}  // namespace onebit::text
