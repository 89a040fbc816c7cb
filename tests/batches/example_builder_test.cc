#include "onebit/data/batches/example_builder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onebit::batches {
namespace {

TEST(TruncatePair, CutsAsTheStepwiseRuleDoes) {
  RandomSequence random(1, 2, 3);
  for (uint64_t a_size = 1; a_size <= 40; ++a_size) {
    for (uint64_t b_size = 1; b_size <= 40; ++b_size) {
      int64_t a_left = static_cast<int64_t>(a_size), b_left = static_cast<int64_t>(b_size);
      while (a_left + b_left > 17) (a_left > b_left ? a_left : b_left) -= 1;
      TokenRange a{100, 100 + a_size}, b{300, 300 + b_size};
      truncate_pair(random, 17, a, b);
      ASSERT_EQ(a.size(), a_left);
      ASSERT_EQ(b.size(), b_left);
      ASSERT_TRUE(a.begin >= 100 && a.end <= 100 + a_size);
      ASSERT_TRUE(b.begin >= 300 && b.end <= 300 + b_size);
    }
  }
}

TEST(TruncatePair, DropsFromBothEndsAlike) {
  double front = 0, all = 0;
  for (uint64_t index = 0; index < 2000; ++index) {
    RandomSequence random(1, 2, index);
    TokenRange a{0, 200}, b{1000, 1010};
    truncate_pair(random, 125, a, b);
    ASSERT_EQ(b.size(), 10);
    front += static_cast<double>(a.begin);
    all += 85;
  }
  EXPECT_NEAR(front, all / 2, 6 * std::sqrt(all) / 2);
}

}  // namespace
}  // namespace onebit::batches
