// Calls that fail because a test wants them to: ONEBIT_EMULATED_CUDA_FAIL="cudaMalloc:3" is the
// third cudaMalloc of the process.
#pragma once

#include <string_view>

namespace emulated_cuda {

// The nth call of this name from now on, 1 the next; fails once. 0 takes the request back.
void fail_call(std::string_view name, int nth);
// Counts a call; true if this one shall fail. With the device's lock held.
bool is_to_fail(std::string_view name);

}  // namespace emulated_cuda
