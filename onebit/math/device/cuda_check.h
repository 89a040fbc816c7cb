// Errors of the CUDA runtime as messages. Only for files that are built with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "onebit/ground/base/error.h"

namespace onebit {

// What a user can do about an error of this kind ("run compute-sanitizer ..."); empty if nothing in
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

}  // namespace onebit
