#include "onebit/ground/base/parallel_for.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "onebit/ground/base/error.h"

namespace onebit {

void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  ONEBIT_INVARIANT(threads >= 1);
  if (count <= 0) return;
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, threads);
  if (parts == 1) {
    body(0, count);
    return;
  }
  std::mutex mutex;
  std::exception_ptr error;
  run_parts(static_cast<int>(parts), [&](int part) {
    try {
      body(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

int available_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // The call fails on machines with more than 1024 processors, the fixed size of the mask.
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace onebit
