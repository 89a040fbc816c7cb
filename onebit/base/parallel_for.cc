#include "onebit/base/parallel_for.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <exception>

namespace onebit {

void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, threads);
  if (parts == 1) {
    body(0, count);
    return;
  }
  std::exception_ptr error;
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    try {
      body(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
#pragma omp critical
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

int available_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

void set_library_threads(int threads) {
  omp_set_num_threads(threads);
}

}  // namespace onebit
