#include "onebit/math/ops/reduce.h"

#include <limits>

#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class ReduceTest : public BackendTest {};

TEST_P(ReduceTest, SumsAreExactToF64) {
  for (const int64_t count : {0, 1, 37, 100003}) {
    const Matrix a = random_f32(1, count, 1);
    double squares = 0, sizes = 0;
    for (const double value : a.data) {
      squares += value * value;
      sizes += std::abs(value);
    }
    const Tensor on_a = upload(a, DType::kF32, {count});
    const double error = static_cast<double>(count) * 4 * static_cast<double>(count) * 0x1p-53;
    EXPECT_NEAR(squared_norm(context(), on_a.view()), squares, error);
    EXPECT_NEAR(absolute_sum(context(), on_a.view()), sizes, error);
    if (GetParam().device != DeviceType::kCpu) continue;
    for (const int threads : {1, 5}) {
      Context other = open(DeviceType::kCpu, threads);
      EXPECT_EQ(squared_norm(other, on_a.view()), squared_norm(context(), on_a.view()));
    }
  }
}

TEST_P(ReduceTest, ColumnSum) {
  const int64_t rows = 1000, columns = 77;
  const Matrix x = random(rows, columns, 1);
  const Tensor on_x = upload(x), sums = zeros_f32({columns});
  column_sum(context(), {.x = on_x.view(), .sum = sums.view()});
  // Blocks of at most 64 rows, added pairwise: fewer than 64 roundings of at most 2 * 64, and five
  // of at most 2 * rows.
  expect_near(sums, column_sum(x), 0, (64 * 128 + 5 * 2 * rows) * 0x1p-24, "sums");
  if (GetParam().device != DeviceType::kCpu) return;
  const std::vector<char> two_threads = bytes(sums);
  for (const int threads : {1, 5}) {
    Context other = open(DeviceType::kCpu, threads);
    Tensor again = zeros_f32({columns});
    column_sum(other, {.x = on_x.view(), .sum = again.view()});
    EXPECT_EQ(bytes(again), two_threads) << threads;
  }
}

TEST_P(ReduceTest, AllFinite) {
  for (const int64_t count : {1, 8, 13, 70001}) {
    Matrix x = random(1, count, 1);
    EXPECT_TRUE(all_finite(context(), upload(x).view()));
    for (const double bad : {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")}) {
      for (const int64_t place : {int64_t{0}, count / 2, count - 1}) {
        Matrix spoilt = x;
        spoilt(0, place) = bad;
        EXPECT_FALSE(all_finite(context(), upload(spoilt).view())) << count << " " << place;
      }
    }
  }
}

ONEBIT_ON_EVERY_BACKEND(ReduceTest);

}  // namespace
}  // namespace onebit::ops
