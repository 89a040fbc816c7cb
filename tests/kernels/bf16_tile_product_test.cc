#include "onebit/math/kernels/bf16_tile_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "onebit/ground/base/philox.h"

namespace onebit::kernels {
namespace {

constexpr float kUntouched = 12345;

int64_t padded(int64_t columns) {
  return (columns + kBf16Columns - 1) / kBf16Columns * kBf16Columns;
}

std::vector<float> random(int64_t count, uint64_t stream) {
  std::vector<float> values(static_cast<size_t>(count));
  RandomSequence sequence(11, stream, 0);
  for (float& value : values) value = static_cast<float>(sequence.uniform() * 4 - 2);
  return values;
}

std::vector<bf16> random_bf16(int64_t count, uint64_t stream) {
  std::vector<bf16> values;
  for (const float value : random(count, stream)) values.emplace_back(value);
  return values;
}

class Bf16TileProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_bf16_products()) GTEST_SKIP() << "no bf16 instructions in this build or processor";
  }
};

// Operands whose rows have different strides, so that confused strides are detected.
struct Operands {
  Operands(int64_t rows, int64_t columns, int64_t pair_count, bool a_is_in_row_pairs)
      : m(rows),
        n(columns),
        pairs(pair_count),
        a_row(a_is_in_row_pairs ? 2 : 2 * pairs + 6),
        a_step(a_is_in_row_pairs ? 2 * m + 10 : 2),
        b_row(2 * padded(n) + 32),
        c_row(padded(n) + 16),
        a(random_bf16(m * a_row + pairs * a_step, 1)),
        b(random_bf16(pairs * b_row, 2)) {}

  Bf16TileProduct product(std::vector<float>& c) const {
    return {.m = m,
            .n = n,
            .pairs = pairs,
            .a = a.data(),
            .a_row = a_row,
            .a_step = a_step,
            .b = b.data(),
            .b_row = b_row,
            .c = c.data(),
            .c_row = c_row};
  }

  // The sum in double precision, and the sum of magnitudes.
  struct Sum {
    double value = 0, magnitude = 0;
  };
  Sum sum(int64_t i, int64_t j) const {
    Sum result;
    for (int64_t p = 0; p < pairs; ++p) {
      for (int64_t half = 0; half < 2; ++half) {
        const bf16 left = a[static_cast<size_t>(i * a_row + p * a_step + half)];
        const bf16 right = b[static_cast<size_t>(p * b_row + 2 * j + half)];
        const double term = double{static_cast<float>(left)} * double{static_cast<float>(right)};
        result.value += term;
        result.magnitude += std::abs(term);
      }
    }
    return result;
  }

  int64_t m, n, pairs, a_row, a_step, b_row, c_row;
  std::vector<bf16> a, b;
};

struct Size {
  int64_t m, n, pairs;
};

// Rows near a multiple of 6, columns near multiples of 16 and 64, one pair, odd and even numbers.
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 13}) {
    for (const int64_t n : {1, 15, 16, 17, 33, 48, 49, 64, 65, 131}) {
      for (const int64_t pairs : {1, 3, 32}) all.push_back({m, n, pairs});
    }
  }
  all.push_back({48, 390, 195});
  return all;
}

TEST_F(Bf16TileProductTest, FollowsASumInDoublePrecision) {
  for (const Size& size : sizes()) {
    for (const bool in_row_pairs : {false, true}) {
      const Operands x(size.m, size.n, size.pairs, in_row_pairs);
      std::vector<float> c(static_cast<size_t>(x.m * x.c_row), kUntouched), added = c;
      Bf16TileProduct product = x.product(c);
      product.factor = 0.375f;
      bf16_tile_product(product);
      product = x.product(added);
      product.add = true;
      bf16_tile_product(product);
      // Products of two bf16 are exact in f32. Each of 2 pairs additions rounds a partial sum, at
      // most the sum of magnitudes, and the factor or the addition to c rounds once more.
      const double rounding = static_cast<double>(2 * x.pairs + 1) * 0x1p-24;
      for (int64_t i = 0; i < x.m; ++i) {
        for (int64_t j = 0; j < x.c_row; ++j) {
          SCOPED_TRACE(testing::Message()
                       << x.m << " x " << x.n << " x " << x.pairs << " pairs, " << i << ", " << j);
          const size_t place = static_cast<size_t>(i * x.c_row + j);
          if (j >= padded(x.n)) {
            ASSERT_EQ(c[place], kUntouched);
            ASSERT_EQ(added[place], kUntouched);
          } else if (j < x.n) {
            const Operands::Sum wanted = x.sum(i, j);
            ASSERT_NEAR(c[place], 0.375 * wanted.value, rounding * 0.375 * wanted.magnitude);
            ASSERT_NEAR(added[place], double{kUntouched} + wanted.value,
                        rounding * wanted.magnitude + 2 * double{kUntouched} * 0x1p-24);
          }
        }
      }
    }
  }
}

// The result of an element does not depend on its tile: attention computes scores twice, with other
// partitions of the queries.
TEST_F(Bf16TileProductTest, AnElementDoesNotDependOnItsTile) {
  const Operands x(13, 131, 7, false);
  std::vector<float> whole(static_cast<size_t>(x.m * x.c_row)), one(kBf16Columns);
  bf16_tile_product(x.product(whole));
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      const int64_t column = j / kBf16Columns * kBf16Columns;
      Bf16TileProduct single = x.product(one);
      single.m = single.n = 1;
      single.a += i * x.a_row;
      single.b += 2 * column;
      bf16_tile_product(single);
      ASSERT_EQ(one[static_cast<size_t>(j - column)], whole[static_cast<size_t>(i * x.c_row + j)])
          << i << ", " << j;
    }
  }
}

const std::vector<Size>& shapes() {  // rows and columns
  static const std::vector<Size> all = {{1, 2, 0},   {1, 16, 0},  {2, 64, 0},  {15, 30, 0},
                                        {16, 32, 0}, {17, 34, 0}, {33, 66, 0}, {49, 128, 0}};
  return all;
}

// Checks the values of `pair` in to [.., to_row], at 2 * column and the next place.
void expect_pair(const std::vector<bf16>& to, int64_t to_row, int64_t pair, int64_t column,
                 bf16 first, bf16 second) {
  const size_t place = static_cast<size_t>(pair * to_row + 2 * column);
  ASSERT_EQ(to[place].bits, first.bits) << pair << ", " << column;
  ASSERT_EQ(to[place + 1].bits, second.bits) << pair << ", " << column;
}

TEST_F(Bf16TileProductTest, PairsColumns) {
  for (const Size& size : shapes()) {
    const int64_t rows = size.m, columns = size.n, from_row = columns + 3;
    const int64_t to_row = 2 * padded(rows) + 8;
    const std::vector<bf16> from = random_bf16(rows * from_row, 3);
    std::vector<bf16> to(static_cast<size_t>(columns / 2 * to_row), bf16(kUntouched));
    pair_columns(from.data(), from_row, rows, columns, to.data(), to_row);
    for (int64_t pair = 0; pair < columns / 2; ++pair) {
      for (int64_t row = 0; row < to_row / 2; ++row) {
        const size_t place = static_cast<size_t>(row * from_row + 2 * pair);
        const bf16 beyond = row < padded(rows) ? bf16() : bf16(kUntouched);
        expect_pair(to, to_row, pair, row, row < rows ? from[place] : beyond,
                    row < rows ? from[place + 1] : beyond);
      }
    }
  }
}

TEST_F(Bf16TileProductTest, PairsRows) {
  for (const Size& size : shapes()) {
    const int64_t rows = size.m, columns = size.n - 1, from_row = columns + 3;
    const int64_t to_row = 2 * padded(columns) + 8;
    const std::vector<float> values = random(rows * from_row, 4);
    std::vector<bf16> from;
    for (const float value : values) from.emplace_back(value);
    std::vector<bf16> to(static_cast<size_t>(bf16_pairs(rows) * to_row), bf16(kUntouched));
    std::vector<bf16> of_floats = to;
    pair_rows(from.data(), from_row, rows, columns, to.data(), to_row);
    round_to_row_pairs(values.data(), from_row, rows, columns, of_floats.data(), to_row);
    for (int64_t pair = 0; pair < bf16_pairs(rows); ++pair) {
      for (int64_t column = 0; column < to_row / 2; ++column) {
        const auto at = [&](int64_t row) {
          if (column >= padded(columns)) return bf16(kUntouched);
          if (column >= columns || row >= rows) return bf16();
          return from[static_cast<size_t>(row * from_row + column)];
        };
        expect_pair(to, to_row, pair, column, at(2 * pair), at(2 * pair + 1));
        expect_pair(of_floats, to_row, pair, column, at(2 * pair), at(2 * pair + 1));
      }
    }
  }
}

// Rounds like the rest of the program: ties to even, infinities stay, NaN stays NaN.
TEST_F(Bf16TileProductTest, RoundsARow) {
  for (const int64_t columns : {1, 15, 16, 17, 31, 32, 33, 64, 100}) {
    std::vector<float> from = random(columns, 5);
    const float special[] = {0x1.01p0f, 0x1.03p0f, -0x1.01p0f, INFINITY, 0x1.FFFFp127f};
    std::copy_n(special, std::min<size_t>(5, from.size()), from.begin());
    std::vector<bf16> to(static_cast<size_t>(columns) + 8, bf16(kUntouched));
    for (const float factor : {1.0f, -0.3f}) {
      round_row(from.data(), columns, factor, to.data());
      for (size_t i = 0; i < to.size(); ++i) {
        const bf16 wanted = i < from.size() ? bf16(from[i] * factor) : bf16(kUntouched);
        ASSERT_EQ(to[i].bits, wanted.bits) << i << " of " << columns;
      }
    }
  }
  const float none = NAN;
  bf16 rounded;
  round_row(&none, 1, 1.0f, &rounded);
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded)));
}

TEST_F(Bf16TileProductTest, NumbersBelowTheNormalCountAsZero) {
  const float small = 0x1p-127f;
  bf16 rounded(1.0f);
  round_row(&small, 1, 1.0f, &rounded);
  EXPECT_EQ(static_cast<float>(rounded), 0.0f);
}

}  // namespace
}  // namespace onebit::kernels
