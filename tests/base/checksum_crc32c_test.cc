#include "onebit/ground/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace onebit {
namespace {

// RFC 3720, appendix B.4, and the check value of the polynomial.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62A8AB43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(crc32c(rising.data(), 32), 0x46DD794Eu);
  EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

TEST(Crc32c, ContinuesFromAnyCut) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const uint32_t whole = crc32c(text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole);
    const uint32_t front = crc32c_by_tables(text.data(), cut);
    EXPECT_EQ(crc32c_by_tables(text.data() + cut, text.size() - cut, front), whole);
  }
}

}  // namespace
}  // namespace onebit
