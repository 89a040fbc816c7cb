// Calls that fail at a test's request: ONEBIT_EMULATED_CUDA_FAIL="cudaMalloc:3" lets the third
// cudaMalloc of the process fail.
#pragma once

#include <string_view>

namespace emulated_cuda {

// Lets the nth call of this name from now on fail, once. 1 is the next call, 0 cancels the request.
void fail_call(std::string_view name, int nth);
// Counts a call. Returns true if it is to fail. Requires the device's lock.
bool is_to_fail(std::string_view name);

}  // namespace emulated_cuda
