#include "onebit/metrics/confusion.h"

#include <cmath>

#include "onebit/base/error.h"

namespace onebit::metrics {

Confusion::Confusion(int64_t classes, std::span<const int32_t> truth,
                     std::span<const int32_t> predicted)
    : classes_(classes),
      examples_(static_cast<int64_t>(truth.size())),
      counts_(static_cast<size_t>(classes * classes), 0) {
  ONEBIT_INVARIANT(truth.size() == predicted.size());
  for (size_t i = 0; i < truth.size(); ++i) {
    ++counts_[static_cast<size_t>(truth[i] * classes + predicted[i])];
  }
}

int64_t Confusion::count(int64_t truth, int64_t predicted) const {
  return counts_[static_cast<size_t>(truth * classes_ + predicted)];
}

double Confusion::accuracy() const {
  int64_t hits = 0;
  for (int64_t i = 0; i < classes_; ++i) hits += count(i, i);
  return examples_ == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(examples_);
}

LabelCounts Confusion::of_class(int64_t index) const {
  LabelCounts counts = {.hits = count(index, index)};
  for (int64_t other = 0; other < classes_; ++other) {
    if (other == index) continue;
    counts.misses += count(index, other);
    counts.false_alarms += count(other, index);
  }
  return counts;
}

std::vector<LabelCounts> Confusion::of_classes() const {
  std::vector<LabelCounts> all;
  for (int64_t i = 0; i < classes_; ++i) {
    const LabelCounts one = of_class(i);
    if (one.hits + one.misses + one.false_alarms > 0) all.push_back(one);
  }
  return all;
}

double Confusion::matthews() const {
  const auto examples = static_cast<double>(examples_);
  double hits = 0, both = 0, truths = 0, predictions = 0;
  for (int64_t i = 0; i < classes_; ++i) {
    const LabelCounts one = of_class(i);
    const auto truth = static_cast<double>(one.support());
    const auto predicted = static_cast<double>(one.hits + one.false_alarms);
    hits += static_cast<double>(one.hits);
    both += truth * predicted;
    truths += truth * truth;
    predictions += predicted * predicted;
  }
  const double spread = (examples * examples - truths) * (examples * examples - predictions);
  return spread == 0 ? 0 : (hits * examples - both) / std::sqrt(spread);
}

}  // namespace onebit::metrics
