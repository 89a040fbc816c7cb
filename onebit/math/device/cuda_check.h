// Errors of the CUDA runtime as messages. Only for files that are built with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "onebit/ground/base/error.h"

namespace onebit {

// What a user can do about an error of this kind ("run compute-sanitizer ..."). Empty if nothing in
// particular.
std::string_view cuda_advice(cudaError_t status);
// Whether the program contains no code that the device, or its driver, can run.
bool means_no_device_code(cudaError_t status);

// Throws the error of `call` with its advice.
[[noreturn]] void fail_cuda(cudaError_t status, const char* call);
// Throws if `call` failed. An error of an earlier kernel may surface in any later call.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail_cuda(status, call);
}

// Whether the kernels of this build can run on a device.

// Whether the program contains code that CUDA device `device_index` and its driver can run. Makes
// this process's context on the device and the device the thread's current one.
bool has_device_code(int device_index);

}  // namespace onebit
