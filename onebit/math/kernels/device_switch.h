// The single device switch, which every operation uses. An operation's .cc declares the two halves,
// which <family>_cpu.cc and <family>_cuda.cu define, and calls on_device::<operation>:
//
//   ONEBIT_DEVICE_OP(void, layer_norm, const LayerNorm&);
//   ...
//   on_device::layer_norm(context, arguments);
//
// Arguments have been checked before a half receives them. Profiles also observe every operation
// here (kernels/work.h).
#pragma once

#include <string_view>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/work.h"

namespace onebit::kernels {

// Set by CMake. Without CUDA no CUDA half is linked, and the branch below that names it is
// discarded.
inline constexpr bool kCudaIsBuilt = ONEBIT_CUDA_IS_BUILT;

[[noreturn]] void fail_without_cuda(std::string_view operation);

}  // namespace onebit::kernels

// (result, operation, types of the arguments after Context&...)
#define ONEBIT_DEVICE_OP(result, operation, ...)                                    \
  namespace cpu {                                                                   \
  result operation(Context& __VA_OPT__(, ) __VA_ARGS__);                            \
  }                                                                                 \
  namespace cuda {                                                                  \
  result operation(Context& __VA_OPT__(, ) __VA_ARGS__);                            \
  }                                                                                 \
  namespace on_device {                                                             \
  template <typename... Given>                                                      \
  result operation(Context& context, const Given&... given) {                       \
    const OperationSpan span = kernels::observed(context, #operation, given...);    \
    if (context.device().is_cpu()) return cpu::operation(context, given...);        \
    if constexpr (kernels::kCudaIsBuilt) return cuda::operation(context, given...); \
    kernels::fail_without_cuda(#operation);                                         \
  }                                                                                 \
  }                                                                                 \
  static_assert(true)
