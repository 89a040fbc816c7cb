#include "onebit/data/text/word_cache.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/text/unpacked.h"

namespace onebit::text {
namespace {

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
