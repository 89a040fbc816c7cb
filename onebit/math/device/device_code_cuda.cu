#include "onebit/math/device/cuda_check.h"

#include <cuda_runtime.h>

namespace onebit {
namespace {

// Compiled for the same devices as every other kernel, and never launched.
__global__ void nothing() {}

}  // namespace

bool has_device_code(int device_index) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing);
  if (means_no_device_code(status)) {
    cudaGetLastError();  // not an error of later calls
    return false;
  }
  check_cuda(status, "cudaFuncGetAttributes");
  return true;
}

}  // namespace onebit
