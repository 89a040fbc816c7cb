#include "onebit/ground/metrics/confusion.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::metrics {

namespace {

auto in_order(const Confusion::Pair& pair) {
  return std::pair(pair.truth, pair.predicted);
}

}  // namespace

Confusion::Confusion(int64_t classes, std::span<const int32_t> truth,
                     std::span<const int32_t> predicted)
    : examples_(static_cast<int64_t>(truth.size())), by_class_(static_cast<size_t>(classes)) {
  ONEBIT_INVARIANT(truth.size() == predicted.size());
  std::vector<Pair> all;
  for (size_t i = 0; i < truth.size(); ++i) {
    all.push_back({truth[i], predicted[i], 1});
    if (truth[i] == predicted[i]) {
      ++by_class_[static_cast<size_t>(truth[i])].hits;
    } else {
      ++by_class_[static_cast<size_t>(truth[i])].misses;
      ++by_class_[static_cast<size_t>(predicted[i])].false_alarms;
    }
  }
  std::ranges::sort(all, {}, in_order);
  for (const Pair& pair : all) {
    if (pairs_.empty() || in_order(pairs_.back()) != in_order(pair)) {
      pairs_.push_back(pair);
    } else {
      ++pairs_.back().examples;
    }
  }
}

int64_t Confusion::count(int64_t truth, int64_t predicted) const {
  const std::pair wanted(static_cast<int32_t>(truth), static_cast<int32_t>(predicted));
  const auto found = std::ranges::lower_bound(pairs_, wanted, {}, in_order);
  return found == pairs_.end() || in_order(*found) != wanted ? 0 : found->examples;
}

std::vector<Confusion::Pair> Confusion::largest_errors(size_t most) const {
  std::vector<Pair> errors;
  for (const Pair& pair : pairs_) {
    if (pair.truth != pair.predicted) errors.push_back(pair);
  }
  std::ranges::stable_sort(errors, std::greater(), &Pair::examples);
  errors.resize(std::min(errors.size(), most));
  return errors;
}

double Confusion::accuracy() const {
  int64_t hits = 0;
  for (const LabelCounts& one : by_class_) hits += one.hits;
  return examples_ == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(examples_);
}

std::vector<LabelCounts> Confusion::of_classes() const {
  std::vector<LabelCounts> all;
  for (const LabelCounts& one : by_class_) {
    if (one.hits + one.misses + one.false_alarms > 0) all.push_back(one);
  }
  return all;
}

double Confusion::matthews() const {
  const auto examples = static_cast<double>(examples_);
  double hits = 0, both = 0, truths = 0, predictions = 0;
  for (const LabelCounts& one : by_class_) {
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
