#include <omp.h>
#include <pthread.h>

#include <atomic>

#include "onebit/ground/base/parallel_for.h"

namespace onebit {
namespace {

// The threads of OpenMP's pool do not survive a fork, and a child that waits for them waits for
// ever. So a forked child, for example a worker of a data loader, computes on one thread.
std::atomic<bool> is_forked_child{false};

// At load, because another user of OpenMP, for example torch, may make the pool before the first
// call here.
[[maybe_unused]] const int forks_are_noticed = pthread_atfork(nullptr, nullptr, [] {
  is_forked_child = true;
  omp_set_num_threads(1);
});

}  // namespace

void run_parts(int parts, const std::function<void(int)>& run) {
  if (is_forked_child) {
    for (int part = 0; part < parts; ++part) run(part);
    return;
  }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) run(part);
}

void set_library_threads(int threads) {
  omp_set_num_threads(is_forked_child ? 1 : threads);
}

}  // namespace onebit
