// Measures the time of a short piece of work on a machine that also does other work.
#pragma once

#include <algorithm>
#include <array>

#include "onebit/ground/base/clock.h"

namespace onebit {

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
