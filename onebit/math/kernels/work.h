// The work of operations, for profiles (device/profile.h). An operation whose arguments are
// a struct declares it in one line of its .cc. Without it a profile has its time but no rate:
//
//   static Work work_of(const LayerNorm& a) { return moves(a.x, a.gamma, a.beta, a.y); }
#pragma once

#include <type_traits>

#include "onebit/math/device/profile.h"
#include "onebit/math/tensor/view.h"

namespace onebit::kernels {

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

}  // namespace onebit::kernels
