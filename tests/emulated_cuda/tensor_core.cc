#include "tests/emulated_cuda/tensor_core.h"

#include <cuda_fp16.h>

#include <cstring>
#include <iterator>

#include "tests/emulated_cuda/thread_block.h"

namespace emulated_cuda {
namespace {

constexpr int kDepth = 16, kMostBlocks = 8;

// All values of f16: the processor's conversion is a call where the build may not use it.
const float* f16_values() {
  static float values[size_t{1} << 16];
  [[maybe_unused]] static const bool filled = [] {
    for (size_t i = 0; i < std::size(values); ++i) {
      values[i] = __half2float({static_cast<uint16_t>(i)});
    }
    return true;
  }();
  return values;
}

class Values {
 public:
  explicit Values(bool is_bf16) : f16_(is_bf16 ? nullptr : f16_values()) {}

  float of(uint16_t bits) const {
    if (f16_ != nullptr) return f16_[bits];
    const uint32_t word = uint32_t{bits} << 16;
    float result = 0;
    std::memcpy(&result, &word, sizeof result);
    return result;
  }
  float of(uint32_t word, int half) const { return of(static_cast<uint16_t>(word >> 16 * half)); }

 private:
  const float* f16_;
};

class Reader {
 public:
  explicit Reader(const SwizzledMatrix& matrix) : matrix_(matrix), values_(matrix.is_bf16) {}

  const uint16_t* piece(int row, int number) const {
    const uint32_t plain = matrix_.address + static_cast<uint32_t>(row) * matrix_.row_bytes +
                           static_cast<uint32_t>(number) * 16;
    const uint32_t mask = matrix_.row_bytes / 16 - 1;
    return shared_piece(plain ^ (plain >> 7 & mask) << 4);
  }
  float value(uint16_t bits) const { return values_.of(bits); }
  void read_row(int row, float* to) const {
    for (int half = 0; half < 2; ++half) {
      const uint16_t* const values = piece(row, half);
      for (int i = 0; i < 8; ++i) *to++ = value(values[i]);
    }
  }

 private:
  const SwizzledMatrix& matrix_;
  Values values_;
};

// The columns of the right operand that a lane multiplies, two of each block.
struct Columns {
  float at[kDepth][2 * kMostBlocks];
};

void add(float* c, int blocks, const TwoRows& left, const Columns& right) {
  for (int row = 0; row < 2; ++row) {
    float sums[2 * kMostBlocks] = {};
    for (int j = 0; j < 2 * blocks; ++j) sums[j] = c[j / 2 * 4 + row * 2 + j % 2];
    for (int k = 0; k < kDepth; ++k) {
      const float factor = left.row[row][k];
      for (int j = 0; j < 2 * kMostBlocks; ++j) sums[j] += factor * right.at[k][j];
    }
    for (int j = 0; j < 2 * blocks; ++j) c[j / 2 * 4 + row * 2 + j % 2] = sums[j];
  }
}

}  // namespace

void add_fragments(float (&c)[4], int lane, const WarpOperands& all, bool is_bf16) {
  const Values values(is_bf16);
  const int group = lane / 4, pair = lane % 4 * 2;
  TwoRows left, right;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < kDepth; ++k) {
      const int beside = k % 8 / 2, second = k / 8;
      left.row[i][k] = values.of(all.lane[group * 4 + beside].word[i + 2 * second], k % 2);
      right.row[i][k] = values.of(all.lane[(pair + i) * 4 + beside].word[4 + second], k % 2);
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < kDepth; ++k) c[i] += left.row[i / 2][k] * right.row[i % 2][k];
  }
}

TwoRows read_rows(const SwizzledMatrix& matrix, int first, int second) {
  const Reader reader(matrix);
  TwoRows both;
  reader.read_row(first, both.row[0]);
  reader.read_row(second, both.row[1]);
  return both;
}

void add_product_of_rows(float* c, int blocks, int lane, const TwoRows& left,
                         const SwizzledMatrix& right) {
  const Reader reader(right);
  Columns columns = {};
  for (int j = 0; j < 2 * blocks; ++j) {
    float row[kDepth];
    reader.read_row(j / 2 * 8 + lane % 4 * 2 + j % 2, row);
    for (int k = 0; k < kDepth; ++k) columns.at[k][j] = row[k];
  }
  add(c, blocks, left, columns);
}

void add_product_of_columns(float* c, int blocks, int lane, const TwoRows& left,
                            const SwizzledMatrix& right) {
  const Reader reader(right);
  Columns columns = {};
  for (int k = 0; k < kDepth; ++k) {
    for (int block = 0; block < blocks; ++block) {
      const uint16_t* const values = reader.piece(k, block) + lane % 4 * 2;
      columns.at[k][2 * block] = reader.value(values[0]);
      columns.at[k][2 * block + 1] = reader.value(values[1]);
    }
  }
  add(c, blocks, left, columns);
}

}  // namespace emulated_cuda
