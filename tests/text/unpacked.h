// Returns the ids of a word, whatever its storage.
#pragma once

#include <vector>

#include "onebit/data/text/word_cache.h"

namespace onebit::text {

inline std::vector<int32_t> unpacked(PackedIds packed, const std::vector<int32_t>& arena) {
  if (packed.in_arena()) {
    const auto ids = packed.arena_ids(arena);
    return {ids.begin(), ids.end()};
  }
  std::vector<int32_t> ids(PackedIds::kInline);
  packed.unpack(ids.data());
  ids.resize(packed.count());
  return ids;
}

}  // namespace onebit::text
