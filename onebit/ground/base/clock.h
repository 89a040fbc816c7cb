#pragma once

#include <ctime>

#include <chrono>

namespace onebit {

// CPU time of the calling thread in seconds, user and kernel mode.
inline double thread_processor_seconds() {
  timespec spent = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

// Wall-clock seconds since construction or the last restart().
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  // Returns seconds() and starts again.
  double restart() {
    const double elapsed = seconds();
    start_ = std::chrono::steady_clock::now();
    return elapsed;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace onebit
