// Runs a grid: its blocks one after another, the threads of a block as fibres. The functions that
// only kernels call act for the running thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/emulated_cuda/device_language.h"

namespace emulated_cuda {

// The limit without an attribute of the kernel.
inline constexpr size_t kSharedBytes = size_t{48} << 10;
// The limits with the attribute, on compute capability 8.0 and 9.0.
inline constexpr size_t kMostSharedBytes80 = size_t{163} << 10;
inline constexpr size_t kMostSharedBytes = size_t{227} << 10;

// `dynamic_bytes`: of shared memory. `random` shuffles blocks, warps and lanes, which no correct
// kernel depends on.
void run_grid(const dim3& grid, const dim3& block, size_t dynamic_bytes,
              const std::function<void()>& thread, bool random);

// The block's object of this type, with NaN at first. Faults: objects exceed kSharedBytes, or a
// larger object exceeds the launch's dynamic shared memory.
void* shared_object(const void* type, size_t size_bytes, size_t alignment_bytes);
// The offset of an address in shared memory. Faults: it is outside, or 16 bytes are not aligned.
uint32_t shared_offset(const void* data);
uint16_t shared_half(uint32_t row, int index);
// The eight values in 16 aligned bytes.
const uint16_t* shared_piece(uint32_t at);

// Copies 8 or 16 bytes. The destination holds NaN until the thread waits for their group.
void start_copy(uint32_t to, const void* from, bool exists, size_t size_bytes);
void end_copy_group();
// Waits for all groups of the thread except the last `left`.
void wait_for_copy_groups(size_t left);

// Starts a product of the thread's warpgroup: `compute` gets the `count` values of `result`, which
// hold NaN from now until the thread waits for their group. Faults: copies that have arrived, or
// registers, were not made visible before.
void start_product(float* result, size_t count, std::function<void(float*)> compute);
void end_product_group();
void wait_for_products();
void publish_shared_writes();
void publish_registers();

}  // namespace emulated_cuda
