// Runs a grid: its blocks one after another, the threads of a block as fibres. What only kernels
// call acts for the thread that runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/emulated_cuda/device_language.h"

namespace emulated_cuda {

// The same on compute capability 8.0 and 9.0; more needs an attribute that onebit does not set.
inline constexpr size_t kSharedBytes = size_t{48} << 10;
inline constexpr unsigned kMaxThreads = 1024;

// Whether a device accepts it.
bool suits_device(const dim3& grid, const dim3& block);

// `random` shuffles blocks, warps and lanes: an order that the threads have to bear.
void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& thread,
              bool random);

// The block's object of this type; fresh ones hold NaN. Fault: kSharedBytes are exceeded.
void* shared_object(const void* type, size_t size_bytes, size_t alignment_bytes);
// Shared memory by its offset. Faults: the place is outside; 16 bytes are not aligned.
uint32_t shared_offset(const void* data);
uint16_t shared_half(uint32_t row, int index);

// 16 bytes, which hold NaN from now until the thread waits for their group.
void start_copy(uint32_t to, const void* from, bool exists);
void end_copy_group();
// All groups of the thread but the last `left`.
void wait_for_copy_groups(size_t left);

}  // namespace emulated_cuda
