// The only place where kernels are launched. For *_cuda.cu only.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/kernels/block_shared_cuda.h"

namespace onebit::kernels::cuda {

// Queues `kernel`, which calls block_shared<Shared>(), on the stream of `cuda`. Error: the launch
// fails, or work before it has failed. The message names the kernel by `what`.
template <typename Shared, typename... Parameters>
void launch_sharing(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
                    void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  cudaLaunchConfig_t shape{};
  shape.gridDim = grid;
  shape.blockDim = block;
  shape.stream = cuda.stream();
  if constexpr (sizeof(Shared) > kStaticSharedBytes) {
    shape.dynamicSmemBytes = sizeof(Shared);
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(sizeof(Shared))),
               what);
  }
  check_cuda(cudaLaunchKernelEx(&shape, kernel, arguments...), what);
}

// The same for a kernel whose shared memory, if any, is at most 48 KiB.
template <typename... Parameters>
void launch(const char* what, const CudaStream& cuda, dim3 grid, dim3 block,
            void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  struct Nothing {};
  launch_sharing<Nothing>(what, cuda, grid, block, kernel, arguments...);
}

}  // namespace onebit::kernels::cuda
