#include "onebit/data/text/word_cache.h"

#include <gtest/gtest.h>

#include "tests/text/unpacked.h"

namespace onebit::text {
namespace {

TEST(PackedIds, KeepsIdsOfEverySize) {
  std::vector<int32_t> arena;
  EXPECT_FALSE(PackedIds().present());
  for (const std::vector<int32_t>& ids : std::vector<std::vector<int32_t>>{
           {}, {0}, {1'048'575, 0, 7}, {1'048'576}, {1, 2, 3, 4}, {2'000'000'000, 5}}) {
    const PackedIds packed(ids, arena);
    EXPECT_TRUE(packed.present());
    EXPECT_EQ(unpacked(packed, arena), ids);
  }
  EXPECT_EQ(arena.size(), 7u);  // only what does not fit
}

}  // namespace
}  // namespace onebit::text
