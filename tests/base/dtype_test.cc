#include "onebit/ground/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace onebit {
namespace {

// Decodes a number bit by bit: sign, `exponent_bits` bits of exponent, and the fraction.
double decode(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double unit = std::ldexp(1.0, -fraction_bits);
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction * unit, 1 - bias);
  } else {
    magnitude = std::ldexp(1 + fraction * unit, exponent - bias);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
T from_bits(uint32_t bits) {
  T value;
  value.bits = static_cast<uint16_t>(bits);
  return value;
}

template <typename T>
struct Format;
template <>
struct Format<bf16> {
  static constexpr int kExponentBits = 8;
  static constexpr uint16_t kInfinity = 0x7F80;
};
template <>
struct Format<f16> {
  static constexpr int kExponentBits = 5;
  static constexpr uint16_t kInfinity = 0x7C00;
};

template <typename T>
class SixteenBitFloat : public testing::Test {};
using Formats = testing::Types<bf16, f16>;
TYPED_TEST_SUITE(SixteenBitFloat, Formats);

TYPED_TEST(SixteenBitFloat, EveryPatternWidensToItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = decode(static_cast<uint16_t>(bits), Format<TypeParam>::kExponentBits);
    const float got = static_cast<float>(from_bits<TypeParam>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << bits;
      ASSERT_EQ(std::signbit(got), (bits & 0x8000u) != 0) << bits;
    }
  }
}

TYPED_TEST(SixteenBitFloat, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = static_cast<float>(from_bits<TypeParam>(bits));
    const uint16_t back = TypeParam(wide).bits;
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(from_bits<TypeParam>(back)))) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Rounding can only change at the middle between two neighbours. The test checks this point, just
// below and just above it, for every pair. The last pair is the largest finite value and infinity
// (which represents the value with the next exponent).
TYPED_TEST(SixteenBitFloat, EveryRoundingIsToTheNearestEven) {
  constexpr int kExponentBits = Format<TypeParam>::kExponentBits;
  constexpr uint16_t kInfinity = Format<TypeParam>::kInfinity;
  const double beyond = std::ldexp(1.0, 1 << (kExponentBits - 1));
  for (uint32_t low = 0; low < kInfinity; ++low) {
    const uint32_t high = low + 1;
    const double low_value = decode(static_cast<uint16_t>(low), kExponentBits);
    const double high_value =
        high == kInfinity ? beyond : decode(static_cast<uint16_t>(high), kExponentBits);
    const float middle = static_cast<float>((low_value + high_value) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low_value + high_value) / 2) << low;
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    const uint32_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(TypeParam(below).bits, low);
    ASSERT_EQ(TypeParam(middle).bits, even);
    ASSERT_EQ(TypeParam(above).bits, high);
    ASSERT_EQ(TypeParam(-below).bits, low | 0x8000u);
    ASSERT_EQ(TypeParam(-middle).bits, even | 0x8000u);
    ASSERT_EQ(TypeParam(-above).bits, high | 0x8000u);
  }
}

TYPED_TEST(SixteenBitFloat, NanStaysNanWhateverItsPayload) {
  for (const uint32_t word : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u, 0x7F80FFFFu}) {
    const TypeParam narrow(std::bit_cast<float>(word));
    EXPECT_TRUE(std::isnan(static_cast<float>(narrow))) << std::hex << word;
    EXPECT_EQ(narrow.bits >> 15, word >> 31);
  }
}

TYPED_TEST(SixteenBitFloat, SubnormalFloatsAndLargeOnesKeepTheirSign) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(TypeParam(smallest).bits, 0u);
  EXPECT_EQ(TypeParam(-smallest).bits, 0x8000u);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(TypeParam(largest).bits, Format<TypeParam>::kInfinity);
  EXPECT_EQ(TypeParam(-largest).bits, Format<TypeParam>::kInfinity | 0x8000u);
}

TEST(DType, SizesNamesAndTypesAgree) {
  EXPECT_EQ(size_bytes_of(DTypeOf<float>::value), int64_t{sizeof(float)});
  EXPECT_EQ(size_bytes_of(DTypeOf<double>::value), int64_t{sizeof(double)});
  EXPECT_EQ(size_bytes_of(DTypeOf<bf16>::value), int64_t{sizeof(bf16)});
  EXPECT_EQ(size_bytes_of(DTypeOf<f16>::value), int64_t{sizeof(f16)});
  EXPECT_EQ(size_bytes_of(DTypeOf<int32_t>::value), 4);
  EXPECT_EQ(size_bytes_of(DTypeOf<int64_t>::value), 8);
  EXPECT_EQ(size_bytes_of(DTypeOf<uint8_t>::value), 1);
  EXPECT_EQ(size_bytes_of(DTypeOf<uint16_t>::value), 2);
  EXPECT_EQ(size_bytes_of(DTypeOf<uint32_t>::value), 4);
  EXPECT_EQ(size_bytes_of(DTypeOf<uint64_t>::value), 8);
  EXPECT_EQ(name_of(DType::kBF16), "bf16");
  EXPECT_EQ(name_of(DType::kF32), "f32");
  EXPECT_EQ(name_of(DType::kU64), "u64");
}

}  // namespace
}  // namespace onebit
