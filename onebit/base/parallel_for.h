// Loops over all threads of the calling rank.
#pragma once

#include <cstdint>
#include <functional>

namespace onebit {

// Calls body(begin, end) on `threads` threads for consecutive parts of [0, count). The parts depend
// on count, grain and threads alone, so results are reproducible. `grain` is the least number of
// items worth a thread. An exception thrown by a body is rethrown here after all have ended.
void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body);

// Processors this process may run on (its affinity mask), at least 1. How many of them a rank
// takes is decided where its context is made (cli/device_option.h).
int available_threads();

// Sets how many threads library calls (oneDNN) made from the calling thread use.
void set_library_threads(int threads);

}  // namespace onebit
