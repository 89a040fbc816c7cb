// The threads of oneDNN: its own (onednn_threads_library.cc), or the ones of onebit's loops
// (onednn_threads_pool.cc), where it was built to take the threads that it is given.
#pragma once

#include <dnnl.hpp>

namespace onebit {

dnnl::stream make_onednn_stream(const dnnl::engine& engine, int threads);

// Primitives that the calling thread creates next are planned for the threads of such a stream.
void plan_for_threads(int threads);

}  // namespace onebit
