#include <omp.h>

#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/base/parallel_parts.h"

namespace onebit {

void run_parts(int parts, const std::function<void(int)>& run) {
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) run(part);
}

void set_library_threads(int threads) {
  omp_set_num_threads(threads);
}

}  // namespace onebit
