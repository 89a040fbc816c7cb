// Instructions that C++ does not provide: asynchronous copies to shared memory, loads of matrices
// from it, and products of 16-bit matrices on tensor cores (compute capability 8.0 and later,
// sections "cp.async", "ldmatrix" and "mma" of the PTX manual). For *_cuda.cu only. The emulated
// device has its own version (tests/emulated_cuda).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace onebit::kernels::cuda {

// An address in shared memory in the form that the instructions below expect.
__device__ inline uint32_t shared_address(const void* data) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(data));
}

// Starts copying 16 bytes of global memory to shared memory, both aligned, or zeros if not
// `exists`.
__device__ inline void start_copy(uint32_t to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
               : "memory");
}
// The same for 8 bytes.
__device__ inline void start_small_copy(uint32_t to, const void* from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(exists ? 8 : 0)
               : "memory");
}
// Closes a group of the copies that this thread has started.
__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Returns when all of this thread's groups are complete. Other threads see them after a barrier.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// Four 8 x 8 matrices. Lane i gives the address of row i % 8 of matrix i / 8.
struct Quad {
  uint32_t word[4];
};
__device__ inline Quad load_matrices(uint32_t address) {
  Quad q;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
               : "r"(address)
               : "memory");
  return q;
}
__device__ inline Quad load_transposed(uint32_t address) {
  Quad q;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
               : "r"(address)
               : "memory");
  return q;
}

// c (16 x 8) += a (16 x 16) . b (16 x 8).
__device__ inline void multiply_add(float (&c)[4], const Quad& a, uint32_t b0, uint32_t b1,
                                    __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(float (&c)[4], const Quad& a, uint32_t b0, uint32_t b1,
                                    __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b0), "r"(b1));
}

}  // namespace onebit::kernels::cuda
