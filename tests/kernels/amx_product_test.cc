#include "onebit/math/kernels/amx_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "onebit/ground/base/philox.h"

namespace onebit::kernels {
namespace {

constexpr float kUntouched = 12345;

template <typename T>
struct LineAligned {
  using value_type = T;
  LineAligned() = default;
  template <typename U>
  explicit LineAligned(const LineAligned<U>&) {}
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const LineAligned&) const { return true; }
};
template <typename T>
using Aligned = std::vector<T, LineAligned<T>>;

std::vector<bf16> random_bf16(int64_t count, uint64_t stream) {
  std::vector<bf16> values;
  RandomSequence sequence(11, stream, 0);
  for (int64_t i = 0; i < count; ++i) {
    values.emplace_back(static_cast<float>(sequence.uniform() * 4 - 2));
  }
  return values;
}

// An operand whose stride differs from both of its extents.
struct Operand {
  Operand(int64_t lines, int64_t depth, bool lines_neighbour, uint64_t stream)
      : stride((lines_neighbour ? lines : depth) + 3),
        values(random_bf16(stride * (lines_neighbour ? depth : lines), stream)),
        all{values.data(), lines, depth, stride, lines_neighbour} {}

  double at(int64_t line, int64_t k) const {
    const int64_t place = all.lines_neighbour ? k * stride + line : line * stride + k;
    return static_cast<double>(static_cast<float>(values[static_cast<size_t>(place)]));
  }
  Aligned<bf16> packed(bool is_left) const {
    Aligned<bf16> strips(static_cast<size_t>(amx_strip_elements(all.lines, all.depth)),
                         bf16(kUntouched));
    (is_left ? amx_pack_left : amx_pack_right)(all, strips.data());
    return strips;
  }

  int64_t stride;
  std::vector<bf16> values;
  AmxOperand all;
};

struct Case {
  int64_t rows, columns, depth;
  bool left_neighbours, right_neighbours;
};

// Whole strips, parts of one, several, and more depth than one pass over it.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t rows : {1, 32, 49}) {
    for (const int64_t columns : {1, 17, 64, 95}) {
      for (const int64_t depth : {1, 31, 64, 290}) {
        for (const bool left : {false, true}) {
          for (const bool right : {false, true}) {
            all.push_back({rows, columns, depth, left, right});
          }
        }
      }
    }
  }
  return all;
}

class AmxProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_amx_products()) GTEST_SKIP() << "no AMX in this build or processor";
  }

  // c of the wanted type, as f32. It starts as kUntouched, with a margin of 5 columns.
  static std::vector<float> multiply(const Operand& left, const Operand& right, bool is_bf16,
                                     bool add, const std::vector<float>& bias) {
    const int64_t rows = left.all.lines, columns = right.all.lines, c_row = columns + 5;
    const auto a = left.packed(true), b = right.packed(false);
    Aligned<float> sums(static_cast<size_t>(amx_sums_elements(rows, columns)));
    std::vector<float> c(static_cast<size_t>(rows * c_row), kUntouched);
    std::vector<bf16> rounded(c.size(), bf16(kUntouched));
    amx_block_product(
        {.rows = rows,
         .columns = columns,
         .depth = left.all.depth,
         .left = a.data(),
         .right = b.data(),
         .sums = sums.data(),
         .bias = bias.empty() ? nullptr : bias.data(),
         .c = is_bf16 ? static_cast<void*>(rounded.data()) : static_cast<void*>(c.data()),
         .c_row = c_row,
         .is_bf16 = is_bf16,
         .add = add});
    for (size_t i = 0; is_bf16 && i < c.size(); ++i) c[i] = static_cast<float>(rounded[i]);
    return c;
  }
};

TEST_F(AmxProductTest, FollowsASumInDoublePrecision) {
  const float before = static_cast<float>(bf16(kUntouched));
  for (const Case& size : cases()) {
    const Operand left(size.rows, size.depth, size.left_neighbours, 1);
    const Operand right(size.columns, size.depth, size.right_neighbours, 2);
    std::vector<float> bias(static_cast<size_t>(size.columns));
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) / 8;
    for (const bool is_bf16 : {false, true}) {
      for (const bool add : {false, true}) {
        const std::vector<float> c =
            multiply(left, right, is_bf16, add, add ? std::vector<float>() : bias);
        for (int64_t i = 0; i < size.rows; ++i) {
          for (int64_t j = 0; j < size.columns + 5; ++j) {
            SCOPED_TRACE(testing::Message()
                         << size.rows << " x " << size.columns << " x " << size.depth << ", "
                         << size.left_neighbours << size.right_neighbours << is_bf16 << add
                         << " at " << i << ", " << j);
            const float got = c[static_cast<size_t>(i * (size.columns + 5) + j)];
            if (j >= size.columns) {
              ASSERT_EQ(got, is_bf16 ? before : kUntouched);
              continue;
            }
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < size.depth; ++k) {
              const double term = left.at(i, k) * right.at(j, k);
              sum += term;
              magnitude += std::abs(term);
            }
            const double other =
                add ? double{is_bf16 ? before : kUntouched} : double{bias[static_cast<size_t>(j)]};
            const double rounding = static_cast<double>(size.depth + 2) * 0x1p-24;
            ASSERT_NEAR(got, sum + other,
                        rounding * (magnitude + std::abs(other)) +
                            (is_bf16 ? 0x1p-8 * std::abs(sum + other) : 0));
          }
        }
      }
    }
  }
}

// An element has the same bits whichever rows and columns are computed with it.
TEST_F(AmxProductTest, AnElementDoesNotDependOnItsBlock) {
  constexpr int64_t kRows = 70, kColumns = 45, kDepth = 700;
  const Operand left(kRows, kDepth, false, 1), right(kColumns, kDepth, true, 2);
  const std::vector<float> whole = multiply(left, right, false, false, {});
  for (const int64_t row : {0, 31, 69}) {
    for (const int64_t column : {0, 33, 44}) {
      Operand one_row = left, one_column = right;
      one_row.all.first = one_row.values.data() + row * left.stride;
      one_column.all.first = one_column.values.data() + column;
      one_row.all.lines = one_column.all.lines = 1;
      EXPECT_EQ(multiply(one_row, one_column, false, false, {})[0],
                whole[static_cast<size_t>(row * (kColumns + 5) + column)]);
    }
  }
}

}  // namespace
}  // namespace onebit::kernels
