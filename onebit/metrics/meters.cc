#include "onebit/metrics/meters.h"

#include <algorithm>
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

void TimeParts::add(std::string_view name, double seconds) {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const auto& part) { return part.first == name; });
  if (found != parts_.end()) {
    found->second += seconds;
  } else {
    parts_.emplace_back(name, seconds);
  }
}

double TimeParts::seconds(std::string_view name) const {
  for (const auto& [part, seconds] : parts_) {
    if (part == name) return seconds;
  }
  return 0;
}

double TimeParts::total_seconds() const {
  double total = 0;
  for (const auto& part : parts_) total += part.second;
  return total;
}

void TimeParts::add(const TimeParts& other) {
  for (const auto& [name, seconds] : other.parts_) add(name, seconds);
}

void TimeParts::reset() {
  for (auto& part : parts_) part.second = 0;
}

}  // namespace onebit::metrics
