// A confusion matrix and the metrics derived from it. Equal to scikit-learn's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/metrics/label_counts.h"

namespace onebit::metrics {

class Confusion {
 public:
  Confusion(int64_t classes, std::span<const int32_t> truth, std::span<const int32_t> predicted);

  int64_t classes() const { return classes_; }
  // Examples of class `truth` that were predicted as `predicted`.
  int64_t count(int64_t truth, int64_t predicted) const;

  double accuracy() const;
  // Matthews' correlation for any number of classes (Gorodkin 2004); 0 if one side is constant.
  double matthews() const;
  LabelCounts of_class(int64_t index) const;
  // The counts of classes that occur in the truth or in predictions, which scikit-learn averages.
  std::vector<LabelCounts> of_classes() const;

 private:
  int64_t classes_, examples_;
  std::vector<int64_t> counts_;  // [truth, predicted]
};

}  // namespace onebit::metrics
