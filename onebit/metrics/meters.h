// Running figures of a loop.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/base/clock.h"

namespace onebit::metrics {

// An exponentially weighted average, corrected for its start: the first values weigh alike.
class RunningAverage {
 public:
  // About how many values it remembers.
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

// The exact mean since the last reset.
class Mean {
 public:
  void add(double value, double weight = 1) {
    sum_ += value * weight;
    weight_ += weight;
  }
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  double weight() const { return weight_; }
  void reset() { sum_ = weight_ = 0; }

 private:
  double sum_ = 0, weight_ = 0;
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

// Seconds by the name of the part of a step, in order of first use. Not shared between threads.
class TimeParts {
 public:
  // Adds the seconds from its construction to its end.
  class Scope {
   public:
    Scope(TimeParts& parts, std::string_view name) : parts_(parts), name_(name) {}
    ~Scope() { parts_.add(name_, watch_.seconds()); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TimeParts& parts_;
    std::string_view name_;  // outlives the scope: a literal
    Stopwatch watch_;
  };

  void add(std::string_view name, double seconds);
  // 0 for a part never added.
  double seconds(std::string_view name) const;
  double total_seconds() const;
  const std::vector<std::pair<std::string, double>>& parts() const { return parts_; }
  // Adds all parts of `other`.
  void add(const TimeParts& other);
  // Back to zero; the names stay.
  void reset();

 private:
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace onebit::metrics
