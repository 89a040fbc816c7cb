// Errors of the CUDA runtime as messages. Only for files that are built with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "onebit/base/error.h"

namespace onebit {

// Throws if `call` failed. An error of an earlier kernel may surface in any later call.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  fail("{}: {} ({}); run compute-sanitizer on the same command to find the kernel", call,
       cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace onebit
