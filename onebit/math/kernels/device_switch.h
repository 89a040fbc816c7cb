// The single device switch, which every operation uses. An operation's .cc declares the two halves,
// which <family>_cpu.cc and <family>_cuda.cu define, and calls on_device::<operation>:
//
//   ONEBIT_DEVICE_OP(void, layer_norm, const LayerNorm&);
//   ...
//   on_device::layer_norm(context, arguments);
//
// Arguments have been checked before a half receives them. Profiles also observe every operation
// here.
#pragma once

#include <string_view>
#include <type_traits>

#include "onebit/math/device/context.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/tensor/view.h"

namespace onebit::kernels {

// The work of operations, for profiles (device/profile.h). An operation whose arguments are
// a struct declares it in one line of its .cc. Without it a profile has its time but no rate:
//
//   static Work work_of(const LayerNorm& a) { return moves(a.x, a.gamma, a.beta, a.y); }

// Counts each view as read or written once. Views that are read and written are passed twice. Empty
// ones count nothing.
template <typename... Views>
Work moves(const Views&... views) {
  Work work;
  ((work.bytes += views.empty() ? 0.0 : static_cast<double>(views.size_bytes())), ...);
  return work;
}

// For an operation without its own work_of(): each of its views is read or written once.
template <typename... Given>
Work work_of(const Given&... given) {
  Work work;
  [[maybe_unused]] const auto count = [&](const auto& one) {
    if constexpr (std::is_convertible_v<decltype(one), ConstView>) work.bytes += moves(one).bytes;
  };
  (count(given), ...);
  return work;
}

// Selected by the types of the arguments: work_of() of the operation's own namespace, else the one
// above.
template <typename... Given>
OperationSpan observed(const Context& context, const char* operation, const Given&... given) {
  return {context, operation, [&] { return work_of(given...); }};
}

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
