// Replaces kernels/block_shared_cuda.h on the emulated device: its folder is searched first.
#pragma once

#include "tests/emulated_cuda/thread_block.h"

namespace onebit::kernels::cuda {

inline constexpr int kMultiprocessorKilobytes = 228;

inline constexpr size_t kStaticSharedBytes = emulated_cuda::kSharedBytes;

template <typename T>
T& block_shared() {
  static constexpr char kType = 0;
  return *static_cast<T*>(emulated_cuda::shared_object(&kType, sizeof(T), alignof(T)));
}

}  // namespace onebit::kernels::cuda
