// Stands in for cuda_profiler_range.cc where the CUDA backend is not built.
#include "onebit/device/profiler_range.h"

namespace onebit {

void push_profiler_range(const char*) {}
void pop_profiler_range() {}

}  // namespace onebit
