#include "onebit/text/word_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace onebit::text {
namespace {

std::vector<int32_t> unpacked(PackedIds packed, const std::vector<int32_t>& arena) {
  if (packed.in_arena()) {
    const auto ids = packed.arena_ids(arena);
    return {ids.begin(), ids.end()};
  }
  std::vector<int32_t> ids(PackedIds::kInline);
  packed.unpack(ids.data());
  ids.resize(packed.count());
  return ids;
}

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

TEST(WordCache, FindsWordsOfEveryLength) {
  WordCache cache;
  for (size_t size = 1; size <= 40; ++size) {
    const std::string word(size, 'q');
    EXPECT_FALSE(cache.find(word).present());
    std::vector<int32_t> ids(size);
    std::iota(ids.begin(), ids.end(), 0);
    cache.insert(word, ids);
  }
  for (size_t size = 1; size <= 40; ++size) {
    const std::vector<int32_t> ids =
        unpacked(cache.find(std::string_view(std::string(size, 'q'))), cache.arena());
    ASSERT_EQ(ids.size(), size);
    EXPECT_EQ(ids.back(), static_cast<int32_t>(size) - 1);
  }
  EXPECT_FALSE(cache.find(std::string_view("qqr")).present());
}

}  // namespace
}  // namespace onebit::text
