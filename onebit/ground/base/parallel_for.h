// Loops over all threads of the calling rank.
#pragma once

#include <cstdint>
#include <functional>

namespace onebit {

// Calls body(begin, end) on `threads` threads for consecutive parts of [0, count). The parts depend
// only on count, grain and threads, so results are reproducible. `grain` is the minimum number of
// items per thread. An exception thrown by a body is rethrown here after all bodies have ended.
void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body);

// The number of processors that this process may run on (its affinity mask), at least 1. How many
// of them a rank uses is decided where its context is created (commands/device_option.h).
int available_threads();

// Sets the number of threads of library calls (oneDNN) made from the calling thread.
void set_library_threads(int threads);

// The loops of parallel_for and of oneDNN. There are two implementations: parallel_parts_openmp.cc,
// and parallel_parts_pool.cc for a oneDNN that takes threads and for the thread sanitizer, which
// does not see OpenMP's memory ordering. Calls run(part) once for every part in [0, parts), each on
// its own thread if enough threads are available. `run` must not throw.
void run_parts(int parts, const std::function<void(int part)>& run);

}  // namespace onebit
