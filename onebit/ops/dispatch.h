// The one switch on the device that every operation makes.
#pragma once

#include "onebit/device/context.h"
#include "onebit/ops/cpu_ops.h"
#include "onebit/ops/cuda_ops.h"

namespace onebit::ops {

// run_on_device(context, &cpu::operation, &cuda::operation, arguments...)
template <typename Result, typename... Arguments, typename... Given>
Result run_on_device(Context& context, Result (*on_cpu)(Context&, Arguments...),
                     Result (*on_cuda)(Context&, Arguments...), const Given&... given) {
  return context.device().is_cpu() ? on_cpu(context, given...) : on_cuda(context, given...);
}

}  // namespace onebit::ops
