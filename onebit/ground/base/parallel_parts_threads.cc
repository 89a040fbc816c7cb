#include <thread>
#include <vector>

#include "onebit/ground/base/parallel_for.h"

namespace onebit {

void run_parts(int parts, const std::function<void(int)>& run) {
  std::vector<std::jthread> others;
  others.reserve(parts - 1);
  for (int part = 1; part < parts; ++part) others.emplace_back([&run, part] { run(part); });
  run(0);
}

// Libraries run on OpenMP threads, which this build limits to one (OMP_NUM_THREADS=1).
void set_library_threads(int) {}

}  // namespace onebit
