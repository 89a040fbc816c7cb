// Compares a model's outputs in bf16 or int8 with those in f32.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace onebit::finetune {

// Outputs must differ from those in f32 by rounding to 8 bits, but not be equal.
inline void expect_near_but_rounded(const std::vector<float>& rounded,
                                    const std::vector<float>& f32) {
  ASSERT_EQ(rounded.size(), f32.size());
  double difference = 0, square = 0;
  for (size_t i = 0; i < f32.size(); ++i) {
    difference += std::pow(rounded[i] - f32[i], 2);
    square += std::pow(f32[i], 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(std::sqrt(difference / square), 0.03);
}

}  // namespace onebit::finetune
