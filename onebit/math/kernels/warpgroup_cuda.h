// Asynchronous matrix products of a warpgroup, four consecutive warps, on the tensor cores of
// Hopper (section "wgmma" of the PTX manual, machine code for sm_90a). For *_cuda.cu only. The
// emulated device has its own version (tests/emulated_cuda).
//
// A product is started. Its result may be used after wait_for_products() and finished(). Until then
// its other operands, registers included, must not change.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "onebit/math/kernels/tensor_core_cuda.h"

namespace onebit::kernels::cuda {

// Whether the code is being compiled for a device that has these products. A kernel that uses them
// is empty on others, where it is not launched.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHasWarpgroupProducts = true;
#else
inline constexpr bool kHasWarpgroupProducts = false;
#endif

// Where an operand lies in shared memory: rows of 64 or 32 16-bit values, kRowBytes = 128 or 64.
// The 16-byte pieces of row r, counted from the beginning of memory aligned to 1024 bytes, are in
// the order of their number exclusive-or r % 8, or r / 2 % 4 ("128-byte", "64-byte swizzling").
template <int kRowBytes>
struct SwizzledRows {
  static_assert(kRowBytes == 128 || kRowBytes == 64);
  uint64_t descriptor;

  // `address`: of the first row, a multiple of 8 rows after the aligned beginning.
  __device__ static SwizzledRows at(uint32_t address) {
    constexpr uint64_t kEightRows = 8 * kRowBytes >> 4, kSwizzle = kRowBytes == 128 ? 1 : 2;
    return {(address & 0x3FFFFu) >> 4 | kEightRows << 16 | kEightRows << 32 | kSwizzle << 62};
  }
  __device__ SwizzledRows rows_on(int rows) const { return {descriptor + rows * kRowBytes / 16}; }
  __device__ SwizzledRows columns_on(int columns) const { return {descriptor + columns * 2 / 16}; }
};

// Makes this thread's writes to shared memory, completed copies included, visible to products that
// begin after a barrier.
__device__ inline void publish_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Orders this thread's earlier writes to registers before the products that follow.
__device__ inline void publish_registers() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void end_product_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Returns when all products of the warpgroup are complete. The results are to be named with
// `finished` then, lest the compiler read them before.
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
template <int kBlocks>
__device__ void finished(float (&result)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (float& one : result[j]) asm volatile("" : "+f"(one)::"memory");
  }
}

// Four blocks of a result as operands, a thread's four elements of each.
#define ONEBIT_FOUR_BLOCKS(c, j)                                                                  \
  "+f"((c)[j][0]), "+f"((c)[j][1]), "+f"((c)[j][2]), "+f"((c)[j][3]), "+f"((c)[(j) + 1][0]),      \
      "+f"((c)[(j) + 1][1]), "+f"((c)[(j) + 1][2]), "+f"((c)[(j) + 1][3]), "+f"((c)[(j) + 2][0]), \
      "+f"((c)[(j) + 2][1]), "+f"((c)[(j) + 2][2]), "+f"((c)[(j) + 2][3]), "+f"((c)[(j) + 3][0]), \
      "+f"((c)[(j) + 3][1]), "+f"((c)[(j) + 3][2]), "+f"((c)[(j) + 3][3])

// start_product<adds>: c = a . b^T or c += a . b^T, where c is 64 x 32 or 64, a 64 x 16 and b 32 or
// 64 x 16. start_adding: c += a . b, where b is 16 x 32 or 64, and of a and c a thread has the
// registers of multiply_add for its warp's 16 rows.
#define ONEBIT_WARPGROUP_PRODUCTS(T, type)                                                      \
  template <bool adds, class Rows>                                                              \
  __device__ void start_product(float(&c)[4][4], Rows a, Rows b, T) {                           \
    asm volatile(                                                                               \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"                                            \
        "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                             \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "             \
        "%16, %17, p, 1, 1, 0, 0;\n}"                                                           \
        : ONEBIT_FOUR_BLOCKS(c, 0)                                                              \
        : "l"(a.descriptor), "l"(b.descriptor), "n"(adds ? 1 : 0));                             \
  }                                                                                             \
  template <bool adds, class Rows>                                                              \
  __device__ void start_product(float(&c)[8][4], Rows a, Rows b, T) {                           \
    asm volatile(                                                                               \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                            \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                             \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "              \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "     \
        "%32, %33, p, 1, 1, 0, 0;\n}"                                                           \
        : ONEBIT_FOUR_BLOCKS(c, 0), ONEBIT_FOUR_BLOCKS(c, 4)                                    \
        : "l"(a.descriptor), "l"(b.descriptor), "n"(adds ? 1 : 0));                             \
  }                                                                                             \
  __device__ inline void start_adding(float(&c)[4][4], const Quad& a, SwizzledRows<64> b, T) {  \
    asm volatile(                                                                               \
        "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                              \
        "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                             \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "             \
        "{%16, %17, %18, %19}, %20, p, 1, 1, 1;\n}"                                             \
        : ONEBIT_FOUR_BLOCKS(c, 0)                                                              \
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b.descriptor));   \
  }                                                                                             \
  __device__ inline void start_adding(float(&c)[8][4], const Quad& a, SwizzledRows<128> b, T) { \
    asm volatile(                                                                               \
        "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                              \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                             \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "              \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "     \
        "{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"                                             \
        : ONEBIT_FOUR_BLOCKS(c, 0), ONEBIT_FOUR_BLOCKS(c, 4)                                    \
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b.descriptor));   \
  }

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
ONEBIT_WARPGROUP_PRODUCTS(__nv_bfloat16, "bf16")
ONEBIT_WARPGROUP_PRODUCTS(__half, "f16")
#endif

#undef ONEBIT_WARPGROUP_PRODUCTS
#undef ONEBIT_FOUR_BLOCKS

}  // namespace onebit::kernels::cuda
