// Selects the instruction set (AVX2, AVX-512, NEON). Used at the end of a Highway source: the CPU
// half of an operation from its loops, which were compiled once per instruction set.
#pragma once

#include "hwy/highway.h"
#include "onebit/math/device/context.h"

// cpu::operation(Context&, const Arguments&) runs `operation` for the best instruction set of this
// processor. For `#if HWY_ONCE`, in the namespace around HWY_NAMESPACE.
#define ONEBIT_CPU_OP(operation, Arguments)                      \
  HWY_EXPORT(operation);                                         \
  namespace cpu {                                                \
  void operation(Context& context, const Arguments& arguments) { \
    HWY_DYNAMIC_DISPATCH(operation)(context, arguments);         \
  }                                                              \
  }                                                              \
  static_assert(true)
