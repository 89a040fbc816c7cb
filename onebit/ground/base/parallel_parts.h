// How parallel_for runs its parts: parallel_parts_openmp.cc, or parallel_parts_threads.cc under the
// thread sanitizer, which does not see the memory ordering of OpenMP's runtime.
#pragma once

#include <functional>

namespace onebit {

// Calls run(part) once for every part in [0, parts), parts >= 2, each on its own thread if enough
// threads are available. `run` must not throw.
void run_parts(int parts, const std::function<void(int part)>& run);

}  // namespace onebit
