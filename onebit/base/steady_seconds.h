// How long a short piece of work takes on a machine that does other things too.
#pragma once

#include <algorithm>
#include <array>

#include "onebit/base/clock.h"

namespace onebit {

// Seconds of one `work()`: the middle one of three means over 20 ms each, after a first call that
// touches the memory. What others have of the processor all the time is in it, since a span is
// longer than a turn of the scheduler; what they have for a moment is not.
template <typename Work>
double steady_seconds(const Work& work) {
  constexpr double kSpanSeconds = 0.02;
  work();
  std::array<double, 3> means{};
  for (double& mean : means) {
    double calls = 0;
    const Stopwatch watch;
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
