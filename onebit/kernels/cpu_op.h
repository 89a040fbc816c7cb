// Where the instruction set (AVX2, AVX-512, NEON) is chosen. The end of a Highway source: the CPU
// half of an operation from its loops, which were compiled once for every instruction set.
#pragma once

#include "hwy/highway.h"
#include "onebit/device/context.h"

// cpu::operation(Context&, const Arguments&) runs the `operation` of the best instruction set that
// this processor has. For `#if HWY_ONCE`, in the namespace around HWY_NAMESPACE.
#define ONEBIT_CPU_OP(operation, Arguments)                      \
  HWY_EXPORT(operation);                                         \
  namespace cpu {                                                \
  void operation(Context& context, const Arguments& arguments) { \
    HWY_DYNAMIC_DISPATCH(operation)(context, arguments);         \
  }                                                              \
  }                                                              \
  static_assert(true)
