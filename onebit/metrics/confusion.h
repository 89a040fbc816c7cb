// Which class was taken for which, and the figures made of it. Equal to scikit-learn's.
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
  // Examples of class `truth` that were taken for `predicted`.
  int64_t count(int64_t truth, int64_t predicted) const;

  double accuracy() const;
  // Matthews' correlation of any number of classes (Gorodkin 2004); 0 where one side is constant.
  double matthews() const;
  LabelCounts of_class(int64_t index) const;
  // Of the classes that occur, truly or in predictions: what scikit-learn takes the mean over.
  std::vector<LabelCounts> of_classes() const;

 private:
  int64_t classes_, examples_;
  std::vector<int64_t> counts_;  // [truth, predicted]
};

}  // namespace onebit::metrics
