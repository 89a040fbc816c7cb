// Hits and misses of labels, and the F1 scores derived from them. Equal to scikit-learn's, where a
// division by zero gives 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::metrics {

// The counts of one label.
struct LabelCounts {
  int64_t hits = 0;          // predicted and true
  int64_t false_alarms = 0;  // predicted, not true
  int64_t misses = 0;        // true, not predicted

  int64_t support() const { return hits + misses; }
  double precision() const;
  double recall() const;
  double f1() const;
};

// The mean over the labels.
double f1_macro(std::span<const LabelCounts> labels);
// F1 of the sums over all labels.
double f1_micro(std::span<const LabelCounts> labels);
// The mean weighted by support.
double f1_weighted(std::span<const LabelCounts> labels);

}  // namespace onebit::metrics
