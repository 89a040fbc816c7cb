#include "onebit/data/text/vocabulary_difference.h"

#include <algorithm>

namespace onebit::text {

std::optional<VocabularyDifference> difference(const Vocabulary& a, const Vocabulary& b) {
  VocabularyDifference found;
  for (int32_t id = std::max(a.size(), b.size()) - 1; id >= 0; --id) {
    if (id < a.size() && id < b.size() && a.token(id) == b.token(id)) continue;
    found.first_id = id;
    ++found.ids;
  }
  if (found.ids == 0) return std::nullopt;
  return found;
}

}  // namespace onebit::text
