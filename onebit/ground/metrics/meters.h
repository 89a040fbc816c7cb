// Running statistics of a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace onebit::metrics {

// An exponentially weighted average with bias correction: the first values have equal weights.
class RunningAverage {
 public:
  // `window` is roughly the number of values that it averages over.
  explicit RunningAverage(double window);
  // Values that are not finite are counted and left out.
  void add(double value);
  // 0 before the first value.
  double average() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  int64_t not_finite() const { return not_finite_; }

 private:
  double keep_, sum_ = 0, weight_ = 0;
  int64_t not_finite_ = 0;
};

// Amounts per second over the last `window` additions: samples/s, tokens/s.
class Rate {
 public:
  explicit Rate(size_t window) : window_(window) {}
  void add(double amount, double seconds);
  // 0 before the first addition.
  double per_second() const { return seconds_ > 0 ? amount_ / seconds_ : 0; }

 private:
  size_t window_;
  std::deque<std::pair<double, double>> last_;
  double amount_ = 0, seconds_ = 0;
};

// The median of many values, computed from a bounded number of them that are evenly spread over
// all. Of the two values in the middle of an even number it is the lower.
class Median {
 public:
  void add(double value);
  int64_t count() const { return count_; }
  // 0 before the first value.
  double median() const;

 private:
  static constexpr size_t kMax = 2048;

  std::vector<double> kept_;
  int64_t count_ = 0, every_ = 1;  // one of every_ values is kept
};

}  // namespace onebit::metrics
