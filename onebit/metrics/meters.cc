#include "onebit/metrics/meters.h"

#include <cmath>

#include "onebit/base/error.h"

namespace onebit::metrics {

RunningAverage::RunningAverage(double window) : keep_(1 - 1 / window) {
  ONEBIT_INVARIANT(window >= 1);
}

void RunningAverage::add(double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  sum_ = keep_ * sum_ + value;
  weight_ = keep_ * weight_ + 1;
}

void Rate::add(double amount, double seconds) {
  last_.emplace_back(amount, seconds);
  if (last_.size() > window_) last_.pop_front();
  // Summed anew: a running difference would drift over millions of steps.
  amount_ = seconds_ = 0;
  for (const auto& [one_amount, one_seconds] : last_) {
    amount_ += one_amount;
    seconds_ += one_seconds;
  }
}

}  // namespace onebit::metrics
