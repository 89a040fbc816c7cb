// The only place where kernels are launched. For *_cuda.cu only.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "onebit/device/cuda_check.h"
#include "onebit/device/cuda_stream.h"

namespace onebit::kernels::cuda {

// Queues `kernel` on the stream of `cuda`. Error: the launch fails, or work before it has failed;
// the message names the kernel by `what`.
template <typename... Parameters>
void launch(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
            void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  cudaLaunchConfig_t shape{};
  shape.gridDim = grid;
  shape.blockDim = block;
  shape.stream = cuda.stream();
  check_cuda(cudaLaunchKernelEx(&shape, kernel, arguments...), what);
}

// The same with an object of type Shared in shared memory (launch_shared), beside those of
// block_shared. The smallest devices that onebit supports have 99 KiB for a block (compute
// capability 8.6).
template <typename Shared, typename... Parameters>
void launch_with_shared(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
                        void (*kernel)(Parameters...),
                        std::type_identity_t<Parameters>... arguments) {
  static_assert(sizeof(Shared) <= size_t{99} << 10);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  int{sizeof(Shared)}),
             what);
  cudaLaunchConfig_t shape{};
  shape.gridDim = grid;
  shape.blockDim = block;
  shape.dynamicSmemBytes = sizeof(Shared);
  shape.stream = cuda.stream();
  check_cuda(cudaLaunchKernelEx(&shape, kernel, arguments...), what);
}

}  // namespace onebit::kernels::cuda
