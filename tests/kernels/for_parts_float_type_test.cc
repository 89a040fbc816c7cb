#include "onebit/math/kernels/for_parts.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace onebit::kernels {
namespace {

template <typename T>
bool is_type_of(DType dtype) {
  bool same = false;
  with_float_type(dtype, [&](auto tag) { same = std::is_same_v<decltype(tag), T>; });
  return same;
}

TEST(FloatType, IsTheOneOfTheDtype) {
  EXPECT_TRUE(is_type_of<float>(DType::kF32));
  EXPECT_TRUE(is_type_of<bf16>(DType::kBF16));
  EXPECT_TRUE(is_type_of<f16>(DType::kF16));
}

TEST(FloatTypeDeathTest, NoOtherDtypeHasLoops) {
  EXPECT_DEATH(with_float_type(DType::kI32, [](auto) {}), "for_parts.h");
}

}  // namespace
}  // namespace onebit::kernels
