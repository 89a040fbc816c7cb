// Named ranges in the timeline of the vendor's profiler: NVTX, which Nsight Systems displays. Does
// nothing in a build without CUDA (no_cuda.cc).
#pragma once

namespace onebit {

// Opens a range on the calling thread. Ranges nest. `name` is copied.
void push_profiler_range(const char* name);
void pop_profiler_range();

}  // namespace onebit
