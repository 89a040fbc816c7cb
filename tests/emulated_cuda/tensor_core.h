// The arithmetic of products of a warp (the PTX manual's section "mma": m16n8k16) and a warpgroup
// ("wgmma": m64n32k16, m64n64k16) for one of its threads. It is compiled without sanitizers,
// because kernels of attention spend most of their time here. The device checks what is read of its
// shared memory (shared_memory.h).
#pragma once

#include <cstdint>

#include "tests/emulated_cuda/device_language.h"

namespace emulated_cuda {

// A lane holds rows lane / 4 and that + 8 of a and c, and column lane / 4 of b. Along k (for c: its
// columns) it holds 2 (lane % 4) and the next, for a and b also these + 8. `all`: a in the first
// four words of each lane, b in the last two.
void add_fragments(float (&c)[4], int lane, const WarpOperands& all, bool is_bf16);

// Rows in shared memory whose pieces of 16 bytes are swizzled: bits 4 to 6 of an address are XORed
// with bits 7 to 9, or for rows of 64 bytes bits 4 and 5 with 7 and 8.
struct SwizzledMatrix {
  uint32_t address;  // of the first row
  uint32_t row_bytes;
  bool is_bf16;  // or f16
};

// 16 columns of two rows.
struct TwoRows {
  float row[2][16];
};
TwoRows read_rows(const SwizzledMatrix& matrix, int first, int second);

// c[4 * blocks] += left . right^T with rows of the right matrix as columns of the sum, or += left .
// right with 16 rows of it. Element 4 j + 2 i + s is row i of the left operand and column
// 8 j + 2 (lane % 4) + s.
void add_product_of_rows(float* c, int blocks, int lane, const TwoRows& left,
                         const SwizzledMatrix& right);
void add_product_of_columns(float* c, int blocks, int lane, const TwoRows& left,
                            const SwizzledMatrix& right);

}  // namespace emulated_cuda
