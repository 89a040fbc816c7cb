#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

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

// Measures the time of a short piece of work on a machine that also does other work.

// Returns seconds per `work()`: the median of three means over 20 ms each, after a first call that
// touches the memory. Constant load by other processes is part of the result, since a span is
// longer than a scheduler time slice. A short burst of load is not. `Watch` replaces the clock in
// tests.
template <typename Watch = Stopwatch, typename Work>
double steady_seconds(const Work& work) {
  constexpr double kSpanSeconds = 0.02;
  work();
  std::array<double, 3> means{};
  for (double& mean : means) {
    double calls = 0;
    const Watch watch;
    while (watch.seconds() < kSpanSeconds) {
      work();
      ++calls;
    }
    mean = watch.seconds() / calls;
  }
  std::sort(means.begin(), means.end());
  return means[1];
}

}  // namespace onebit
