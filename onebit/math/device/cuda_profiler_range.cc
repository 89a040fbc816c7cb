#include <nvtx3/nvToolsExt.h>

#include "onebit/math/device/profile.h"

namespace onebit {

void push_profiler_range(const char* name) {
  nvtxRangePushA(name);
}

void pop_profiler_range() {
  nvtxRangePop();
}

}  // namespace onebit
