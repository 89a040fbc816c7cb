#include "onebit/math/ops/int8_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/constant_weights.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"
#include "tests/reference/activation.h"
#include "tests/reference/matrix.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

// A row of numbers as multiples of a scale, as int8_linear.h defines them. The nearest multiple is
// chosen in f32, so that the reference rounds as the operation does.
struct RoundedRow {
  double scale = 0;
  std::vector<double> multiples;
};

RoundedRow rounded_weight(const Matrix& x, int64_t row) {
  float largest = 0;
  for (int64_t i = 0; i < x.columns; ++i) {
    largest = std::max(largest, std::abs(static_cast<float>(x(row, i))));
  }
  const float scale = largest / 127;
  RoundedRow result{scale, {}};
  for (int64_t i = 0; i < x.columns; ++i) {
    const float value = static_cast<float>(x(row, i)) * (1 / scale);
    result.multiples.push_back(std::nearbyint(value));
  }
  return result;
}

RoundedRow rounded_input(const Matrix& x, int64_t row) {
  float least = 0, most = 0;
  for (int64_t i = 0; i < x.columns; ++i) {
    least = std::min(least, static_cast<float>(x(row, i)));
    most = std::max(most, static_cast<float>(x(row, i)));
  }
  const float scale = (most - least) / 255, inverse = 1 / scale;
  const double zero = std::nearbyint(-least * inverse);
  RoundedRow result{scale, {}};
  for (int64_t i = 0; i < x.columns; ++i) {
    const double value = std::nearbyint(static_cast<float>(x(row, i)) * inverse) + zero;
    result.multiples.push_back(std::clamp(value, 0.0, 255.0) - zero);
  }
  return result;
}

class Int8LinearTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_int8(context_); !why.empty()) GTEST_SKIP() << why;
  }

  // Numbers around `center`, rounded to f32.
  static Matrix random(int64_t rows, int64_t columns, uint64_t stream, double center = 0) {
    Matrix x(rows, columns);
    RandomSequence sequence(20, stream, 0);
    for (double& value : x.data) {
      value = static_cast<float>((sequence.uniform() * 4 - 2 + center) * (1 + center));
    }
    return x;
  }
  static Tensor tensor(const Matrix& x, Shape shape) {
    Tensor result(Device{}, DType::kF32, shape);
    for (size_t i = 0; i < x.data.size(); ++i) {
      result.data<float>()[i] = static_cast<float>(x.data[i]);
    }
    return result;
  }
  static Tensor tensor(const Matrix& x) { return tensor(x, {x.rows, x.columns}); }

  // Overwrites the weight, so that nothing but the rounded copy can give the result.
  ConstantWeights quantise(const Tensor& weight) {
    ConstantWeights promise(context_, weight.view().raw(), weight.view().size_bytes());
    EXPECT_TRUE(
        quantise_constant_weight(context_, {.weight = weight.view(), .values = weight.view()}));
    fill(context_, weight.view(), -7);
    return promise;
  }

  Tensor product(Context& context, const Tensor& x, const Tensor& weight, const ConstView& bias) {
    Tensor y(Device{}, DType::kF32, {x.shape()[0], weight.shape()[0]});
    linear(context, {.x = x.view(), .weight = weight.view(), .bias = bias, .y = y.view()});
    return y;
  }

  static void expect_same_bits(const ConstView& a, const ConstView& b, const std::string& what) {
    ASSERT_EQ(a.size_bytes(), b.size_bytes());
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.size_bytes())), 0) << what;
  }

  Context context_ = Context::cpu(2);
};

// Rows beyond one block of the operation, and sizes that are no multiples of a vector.
TEST_F(Int8LinearTest, IsTheProductOfRoundedOperands) {
  constexpr std::array<std::array<int64_t, 3>, 5> kSizes = {
      {{1, 48, 32}, {7, 3, 37}, {130, 65, 48}, {300, 384, 96}, {65, 1536, 384}}};
  for (const auto& [rows, in, out] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << in << " x " << out);
    const Matrix x = random(rows, in, 1, 0.7), weight = random(out, in, 2);
    const Matrix bias = random(1, out, 3);
    const Tensor on_x = tensor(x), on_weight = tensor(weight), on_bias = tensor(bias, {out});
    const ConstantWeights promise = quantise(on_weight);
    const Tensor y = product(context_, on_x, on_weight, on_bias.view());
    const Tensor unbiased = product(context_, on_x, on_weight, {});
    for (int64_t i = 0; i < rows; ++i) {
      const RoundedRow input = rounded_input(x, i);
      for (int64_t j = 0; j < out; ++j) {
        const RoundedRow column = rounded_weight(weight, j);
        double sum = 0, exact = 0, largest_error = 0;
        for (int64_t k = 0; k < in; ++k) {
          const auto at = static_cast<size_t>(k);
          sum += input.multiples[at] * column.multiples[at];
          exact += x(i, k) * weight(j, k);
          largest_error += 0.51 * column.scale * std::abs(x(i, k)) +
                           1.01 * input.scale * (std::abs(weight(j, k)) + column.scale);
        }
        const double wanted = sum * input.scale * column.scale;
        const double roundoff = 4 * 0x1p-24 * (std::abs(wanted) + std::abs(bias(0, j)));
        const int64_t at = i * out + j;
        ASSERT_NEAR(unbiased.data<float>()[at], wanted, roundoff) << i << ", " << j;
        ASSERT_NEAR(y.data<float>()[at], wanted + bias(0, j), roundoff) << i << ", " << j;
        ASSERT_NEAR(wanted, exact, largest_error) << i << ", " << j;
      }
    }
  }
}

TEST_F(Int8LinearTest, Activates) {
  constexpr int64_t kRows = 133, kIn = 96, kOut = 72;
  const Tensor x = tensor(random(kRows, kIn, 1)), weight = tensor(random(kOut, kIn, 2));
  const Tensor bias = tensor(random(1, kOut, 3), {kOut});
  const ConstantWeights promise = quantise(weight);
  const Tensor before = product(context_, x, weight, bias.view());
  for (const ActivationKind kind :
       {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu,
        ActivationKind::kSwish, ActivationKind::kTanh}) {
    const Tensor y(Device{}, DType::kF32, {kRows, kOut}), spare(Device{}, DType::kF32, y.shape());
    linear_activation(context_, {.kind = kind,
                                 .x = x.view(),
                                 .weight = weight.view(),
                                 .bias = bias.view(),
                                 .pre_activation = spare.view(),
                                 .y = y.view()});
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      const double at = before.data<float>()[i];
      ASSERT_NEAR(y.data<float>()[i], reference::activation(kind, at),
                  16 * 0x1p-24 * (1 + std::abs(at)));
    }
  }
}

// So a text's vector does not depend on the texts beside it, or on the threads.
TEST_F(Int8LinearTest, ARowDependsOnNoOtherRow) {
  constexpr int64_t kRows = 203, kIn = 80, kOut = 112;
  const Matrix rows = random(kRows, kIn, 1);
  const Tensor x = tensor(rows), weight = tensor(random(kOut, kIn, 2));
  const ConstantWeights promise = quantise(weight);
  const Tensor together = product(context_, x, weight, {});
  for (const int64_t begin : {0, 1, 64, 127, 128, 202}) {
    for (const int64_t count : {1, 2, 17, 70}) {
      const int64_t end = std::min(begin + count, kRows);
      Tensor some(Device{}, DType::kF32, {end - begin, kIn});
      copy(some.view(), x.view().rows(begin, end));
      const Tensor alone = product(context_, some, weight, {});
      expect_same_bits(alone.view(), together.view().rows(begin, end), "other rows");
    }
  }
  for (const int threads : {1, 3}) {
    Context other = Context::cpu(threads);
    const Tensor same = tensor(random(kOut, kIn, 2));
    const ConstantWeights its(other, same.view().raw(), same.view().size_bytes());
    ASSERT_TRUE(quantise_constant_weight(other, {.weight = same.view(), .values = same.view()}));
    expect_same_bits(product(other, x, same, {}).view(), together.view(), "threads");
  }
}

// Sums of the largest operands: instructions that add them in 16 bits would overflow.
TEST_F(Int8LinearTest, LargestSumsAreExact) {
  constexpr int64_t kRows = 70, kIn = 4096, kOut = 64;
  Tensor x(Device{}, DType::kF32, {kRows, kIn}), weight(Device{}, DType::kF32, {kOut, kIn});
  fill(context_, x.view(), 255);
  fill(context_, weight.view(), 127);
  for (int64_t i = 0; i < kIn; ++i) weight.data<float>()[i] = -127;
  const ConstantWeights promise = quantise(weight);
  const Tensor y = product(context_, x, weight, {});
  for (int64_t i = 0; i < kRows * kOut; ++i) {
    ASSERT_EQ(y.data<float>()[i], (i % kOut == 0 ? -1.0f : 1.0f) * 255 * 127 * kIn) << i;
  }
}

// Rounding must not hide that a model is damaged, or divide by 0.
TEST_F(Int8LinearTest, UnusualNumbers) {
  constexpr int64_t kRows = 6, kIn = 50, kOut = 40;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = tensor(random(kRows, kIn, 1)), weight = tensor(random(kOut, kIn, 2));
  const Tensor bias = tensor(random(1, kOut, 3), {kOut});
  for (int64_t i = 0; i < kIn; ++i) {
    x.data<float>()[i] = 0;
    x.data<float>()[kIn + i] = 0x1p-140f;
    weight.data<float>()[i] = 0;
  }
  x.data<float>()[2 * kIn + 49] = kNan;
  x.data<float>()[3 * kIn] = kInfinity;
  x.data<float>()[4 * kIn + 17] = -kInfinity;
  weight.data<float>()[kIn + 7] = kNan;
  const ConstantWeights promise = quantise(weight);
  const Tensor y = product(context_, x, weight, bias.view());
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kOut; ++column) {
      const float value = y.data<float>()[row * kOut + column];
      const bool is_damaged = column == 1 || (row >= 2 && row <= 4);
      ASSERT_EQ(std::isnan(value), is_damaged) << row << ", " << column;
      if (!is_damaged && (row < 2 || column == 0)) {
        ASSERT_EQ(value, bias.data<float>()[column]) << row << ", " << column;
      }
    }
  }
}

TEST_F(Int8LinearTest, AHeadOfFewOutputsStaysAsItIs) {
  const Tensor x = tensor(random(3, 64, 1)), weight = tensor(random(5, 64, 2));
  const Tensor before = product(context_, x, weight, {});
  const ConstantWeights promise(context_, weight.view().raw(), weight.view().size_bytes());
  EXPECT_FALSE(
      quantise_constant_weight(context_, {.weight = weight.view(), .values = weight.view()}));
  EXPECT_FALSE(is_quantised(context_, weight.view().raw()));
  expect_same_bits(product(context_, x, weight, {}).view(), before.view(), "few outputs");
}

TEST_F(Int8LinearTest, AllocatesNothingWhenRepeated) {
  const Tensor x = tensor(random(90, 64, 1)), weight = tensor(random(48, 64, 2));
  const Tensor y(Device{}, DType::kF32, {90, 48});
  const ConstantWeights promise = quantise(weight);
  const auto run = [&](int64_t rows) {
    linear(context_, {.x = x.view().rows(0, rows),
                      .weight = weight.view(),
                      .bias = {},
                      .y = y.view().rows(0, rows)});
  };
  for (const int64_t rows : {90, 33, 90}) run(rows);
  const int64_t before = memory::allocation_count();
  for (const int64_t rows : {90, 33}) run(rows);
  EXPECT_EQ(memory::allocation_count(), before);
}

// The next owner of the memory does not meet the copy.
TEST_F(Int8LinearTest, ACopyDoesNotOutliveThePromise) {
  const Tensor x = tensor(random(3, 64, 1)), weight = tensor(random(48, 64, 2));
  const Tensor before = product(context_, x, weight, {});
  { const ConstantWeights promise = quantise(weight); }
  EXPECT_FALSE(is_quantised(context_, weight.view().raw()));
  copy(weight.view(), tensor(random(48, 64, 2)).view());
  expect_same_bits(product(context_, x, weight, {}).view(), before.view(), "afterwards");
}

}  // namespace
}  // namespace onebit::ops
