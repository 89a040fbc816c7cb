// A confusion matrix and the metrics derived from it. Equal to scikit-learn's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onebit/ground/metrics/label_counts.h"

namespace onebit::metrics {

// Stores only the pairs that occur, so that its size grows with the examples and the classes, of
// which there may be tens of thousands.
class Confusion {
 public:
  struct Pair {
    int32_t truth = 0, predicted = 0;
    int64_t examples = 0;
  };

  Confusion(int64_t classes, std::span<const int32_t> truth, std::span<const int32_t> predicted);

  int64_t classes() const { return static_cast<int64_t>(by_class_.size()); }
  // Examples of class `truth` that were predicted as `predicted`.
  int64_t count(int64_t truth, int64_t predicted) const;
  // The most frequent pairs of different classes, at most `most`, the first ones first where their
  // numbers are equal.
  std::vector<Pair> largest_errors(size_t most) const;

  double accuracy() const;
  // Matthews' correlation for any number of classes (Gorodkin 2004), or 0 if one side is constant.
  double matthews() const;
  const LabelCounts& of_class(int64_t index) const { return by_class_[static_cast<size_t>(index)]; }
  // The counts of classes that occur in the truth or in predictions, which scikit-learn averages.
  std::vector<LabelCounts> of_classes() const;

 private:
  int64_t examples_;
  std::vector<Pair> pairs_;  // sorted by (truth, predicted)
  std::vector<LabelCounts> by_class_;
};

}  // namespace onebit::metrics
