#include "onebit/ground/metrics/meters.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"

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

void Median::add(double value) {
  if (count_++ % every_ != 0) return;
  kept_.push_back(value);
  if (kept_.size() < kMax) return;
  for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  every_ *= 2;
}

double Median::median() const {
  if (kept_.empty()) return 0;
  std::vector<double> values = kept_;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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
