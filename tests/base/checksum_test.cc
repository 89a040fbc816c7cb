#include "onebit/ground/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace onebit {
namespace {

TEST(Crc32, HasTheCheckValueOfItsDefinition) {
  EXPECT_EQ(crc32_of("123456789", 9), 0xCBF43926u);
  EXPECT_EQ(crc32_of("", 0), 0u);
}

TEST(Crc32, ContinuesAndJoins) {
  const std::string text = "the quick brown fox";
  for (size_t size = 0; size <= text.size(); ++size) {
    const uint32_t first = crc32_of(text.data(), size);
    const size_t rest = text.size() - size;
    const uint32_t whole = crc32_of(text.data(), text.size());
    EXPECT_EQ(crc32_of(text.data() + size, rest, first), whole);
    EXPECT_EQ(crc32_joined(first, crc32_of(text.data() + size, rest), rest), whole);
  }
}

}  // namespace
}  // namespace onebit
