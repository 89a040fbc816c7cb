// Replaces cuda_profiler_range.cc in builds without CUDA.
#include "onebit/math/device/profiler_range.h"

namespace onebit {

void push_profiler_range(const char*) {}
void pop_profiler_range() {}

}  // namespace onebit
