#include "onebit/data/batches/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace onebit::batches {
namespace {

TEST(Permutation, VisitsEveryNumberOnce) {
  for (const uint64_t count : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    const Permutation permutation(count, 42);
    std::vector<int> seen(count, 0);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_LT(permutation(i), count);
      ++seen[permutation(i)];
    }
    EXPECT_EQ(seen, std::vector<int>(count, 1)) << count;
  }
}

TEST(Permutation, WorksOnHugeCounts) {
  const uint64_t count = (uint64_t{1} << 40) + 12345;
  const Permutation permutation(count, 1);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_LT(permutation(i * 1000003), count);
    ASSERT_NE(permutation(i), permutation(i + 1));
  }
}

// Over many seeds every number lands on every place equally often: chi-square with 63 degrees of
// freedom stays below its mean by 6 standard deviations, 63 + 6 sqrt(126).
TEST(Permutation, IsUniformOverSeeds) {
  constexpr int kCount = 64, kSeeds = 6400;
  for (const uint64_t index : {0, 1, 31, 63}) {
    std::vector<double> seen(kCount, 0);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) seen[Permutation(kCount, seed)(index)] += 1;
    double chi_square = 0;
    for (const double times : seen) chi_square += (times - 100) * (times - 100) / 100;
    EXPECT_LT(chi_square, 130.4) << index;
  }
}

// Neighbours do not stay neighbours: of n adjacent pairs about 2 remain adjacent (Poisson).
TEST(Permutation, SeparatesNeighbours) {
  constexpr uint64_t kCount = 10000;
  const Permutation permutation(kCount, 9);
  int adjacent = 0;
  for (uint64_t i = 0; i + 1 < kCount; ++i) {
    const uint64_t a = permutation(i), b = permutation(i + 1);
    adjacent += a + 1 == b || b + 1 == a;
  }
  EXPECT_LT(adjacent, 14);  // P(Poisson(2) >= 14) < 1e-7
}

}  // namespace
}  // namespace onebit::batches
