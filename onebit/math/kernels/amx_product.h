// Products of bf16 matrices by a processor's tiles (AMX: Xeons since Sapphire Rapids), summed in
// f32. Operands are packed into strips first, which one core then multiplies block by block.
// Subnormal numbers count as zero, as the instructions define.
#pragma once

#include <cstdint>

#include "onebit/ground/base/dtype.h"
#include "onebit/math/kernels/bf16_tile_product.h"

namespace onebit::kernels {

// Whether this build and this processor have the instructions, the operating system permits them
// and oneDNN uses them, whose variables limit instructions. If not, the functions below must not be
// called.
bool has_amx_products();

// Rows of the left operand or columns of the right one in a strip, and what the depth of a strip,
// the summed index, is a multiple of.
inline constexpr int64_t kAmxStrip = 32;

inline int64_t amx_padded(int64_t count) {
  return (count + kAmxStrip - 1) / kAmxStrip * kAmxStrip;
}

// Element (line, k): line is a row of the left operand or a column of the right one, k the summed
// index.
struct AmxOperand {
  const bf16* first;
  int64_t lines, depth;
  int64_t stride;        // elements to the next line, or to the next k if lines are neighbours
  bool lines_neighbour;  // first[k * stride + line], otherwise first[line * stride + k]
};

// The elements of the strips of this many lines.
inline int64_t amx_strip_elements(int64_t lines, int64_t depth) {
  return amx_padded(lines) * amx_padded(depth);
}

// Writes one strip after the other, padded with zeros to whole strips. `to` is aligned to 64 bytes.
void amx_pack_left(const AmxOperand&, bf16* to);
void amx_pack_right(const AmxOperand&, bf16* to);

// c [rows, columns] = left . right + bias, or c += left . right with `add`. The order in which the
// sum of an element is computed depends on the depth alone.
struct AmxBlock {
  int64_t rows, columns, depth;  // not padded
  const bf16 *left, *right;      // packed
  // Memory for amx_sums_elements(rows, columns), aligned to 64 bytes. It stays in a core's cache.
  float* sums;
  const float* bias;  // [columns], null: none
  void* c;            // f32 or bf16
  int64_t c_row;      // elements
  bool is_bf16, add;
};
void amx_block_product(const AmxBlock&);

inline int64_t amx_sums_elements(int64_t rows, int64_t columns) {
  return amx_padded(rows) * amx_padded(columns);
}

// bf16_tile_product() where there are tiles: what attention multiplies. a_step or a_row is 2.
void amx_tile_product(const Bf16TileProduct&);

}  // namespace onebit::kernels
