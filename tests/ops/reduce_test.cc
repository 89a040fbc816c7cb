// reduce.h, cast.h and rows.h.
#include "onebit/ops/reduce.h"

#include <bit>
#include <limits>

#include "onebit/ops/cast.h"
#include "onebit/ops/rows.h"
#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class FlatTest : public BackendTest {};

TEST_P(FlatTest, SumsAreExactToF64) {
  for (const int64_t count : {0, 1, 37, 100003}) {
    const Matrix a = random_f32(1, count, 1), b = random_f32(1, count, 2);
    double squares = 0, sizes = 0, products = 0, total = 0;
    for (size_t i = 0; i < a.data.size(); ++i) {
      squares += a.data[i] * a.data[i];
      sizes += std::abs(a.data[i]);
      products += a.data[i] * b.data[i];
      total += a.data[i];
    }
    const Tensor on_a = upload(a, DType::kF32, {count}), on_b = upload(b, DType::kF32, {count});
    const double error = static_cast<double>(count) * 4 * static_cast<double>(count) * 0x1p-53;
    EXPECT_NEAR(squared_norm(context(), on_a.view()), squares, error);
    EXPECT_NEAR(absolute_sum(context(), on_a.view()), sizes, error);
    EXPECT_NEAR(dot(context(), on_a.view(), on_b.view()), products, error);
    EXPECT_NEAR(sum(context(), on_a.view()), total, error);
    if (GetParam().device != DeviceType::kCpu) continue;
    for (const int threads : {1, 5}) {
      Context other = open(DeviceType::kCpu, threads);
      EXPECT_EQ(squared_norm(other, on_a.view()), squared_norm(context(), on_a.view()));
    }
  }
}

TEST_P(FlatTest, ColumnSum) {
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

TEST_P(FlatTest, AllFinite) {
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

// Every 16-bit pattern, the neighbours of every rounding tie, and the special values.
TEST_P(FlatTest, CastsRoundToNearestEven) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; high += 3) {
    for (const uint32_t low : {0u, 0x7FFFu, 0x8000u, 0x8001u, 0x0FFFu, 0x1000u, 0x1001u, 0xF000u}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const int64_t count = static_cast<int64_t>(values.size());
  const Tensor from = upload_values(values, {count}), to = zeros({count}),
               back = zeros_f32({count});
  cast(context(), {.from = from.view(), .to = to.view()});
  cast(context(), {.from = to.view(), .to = back.view()});
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[size_t(i)];
    const float wanted = dtype() == DType::kF32    ? value
                         : dtype() == DType::kBF16 ? static_cast<float>(bf16(value))
                                                   : static_cast<float>(f16(value));
    const float got = to_cpu_f32(back.view().rows(i, i + 1)).data<float>()[0];
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wanted)) << value;
    }
  }
}

TEST_P(FlatTest, FillScaleAdd) {
  const int64_t count = 53;
  const Matrix x = random(1, count, 1), y = random(1, count, 2);
  const Tensor on_x = upload(x), on_y = upload(y), filled = zeros({count});
  fill(context(), filled.view(), 1.5f);
  expect_near(
      filled,
      [&] {
        Matrix m(1, count);
        for (double& v : m.data) v = 1.5;
        return m;
      }(),
      0, 0, "fill");
  add(context(), {.x = on_x.view(), .y = on_y.view()});
  expect_near(on_y, sum(x, y), epsilon(), 0x1p-22, "add");
  scale(context(), on_x.view(), 0.25f);
  Matrix quarter = x;
  for (double& value : quarter.data) value *= 0.25;
  expect_near(on_x, quarter, 0, 0, "scale by a power of two");
}

TEST_P(FlatTest, GatherAndScatterRows) {
  const std::vector<int32_t> indices = {4, 0, 7};
  const Matrix x = random(9, 21, 1), base = random(9, 21, 2);
  const Tensor on_x = upload(x), on_indices = upload_values(indices, {3}), picked = zeros({3, 21});
  gather_rows(context(), {.x = on_x.view(), .indices = on_indices.view(), .y = picked.view()});
  Matrix wanted(3, 21), scattered = base;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 21; ++j) {
      wanted(i, j) = x(indices[size_t(i)], j);
      scattered(indices[size_t(i)], j) += wanted(i, j);
    }
  }
  expect_near(picked, wanted, 0, 0, "gather");
  const Tensor target = upload(base);
  scatter_add_rows(context(),
                   {.x = picked.view(), .indices = on_indices.view(), .y = target.view()});
  expect_near(target, scattered, epsilon(), 0x1p-22, "scatter");
}

ONEBIT_ON_EVERY_BACKEND(FlatTest);

TEST(RowErrors, OutsideAndTwice) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {3, 2}),
               y = Tensor::zeros({}, DType::kF32, {3, 2});
  const int32_t outside[] = {0, 1, 3}, twice[] = {0, 2, 2};
  EXPECT_THROW(
      gather_rows(context, {.x = x.view(), .indices = ConstView::of(outside, {3}), .y = y.view()}),
      Error);
  EXPECT_THROW(scatter_add_rows(
                   context, {.x = x.view(), .indices = ConstView::of(outside, {3}), .y = y.view()}),
               Error);
  EXPECT_THROW(scatter_add_rows(
                   context, {.x = x.view(), .indices = ConstView::of(twice, {3}), .y = y.view()}),
               Error);
}

}  // namespace
}  // namespace onebit::ops
