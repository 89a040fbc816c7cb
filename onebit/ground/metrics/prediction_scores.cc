#include "onebit/ground/metrics/prediction_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::metrics {

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

std::vector<double> softmax(std::span<const float> outputs) {
  std::vector<double> result(outputs.begin(), outputs.end());
  const double most = *std::max_element(result.begin(), result.end());
  double sum = 0;
  for (double& value : result) sum += value = std::exp(value - most);
  for (double& value : result) value /= sum;
  return result;
}

int32_t best_class(std::span<const float> outputs) {
  return static_cast<int32_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
}

double cross_entropy(std::span<const float> outputs, int32_t target) {
  const double most = double{*std::max_element(outputs.begin(), outputs.end())};
  double sum = 0;
  for (const float output : outputs) sum += std::exp(double{output} - most);
  return most + std::log(sum) - double{outputs[target]};
}

namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double LabelCounts::precision() const {
  return share(hits, hits + false_alarms);
}

double LabelCounts::recall() const {
  return share(hits, hits + misses);
}

double LabelCounts::f1() const {
  return share(2 * hits, 2 * hits + false_alarms + misses);
}

double f1_macro(std::span<const LabelCounts> labels) {
  double sum = 0;
  for (const LabelCounts& one : labels) sum += one.f1();
  return labels.empty() ? 0 : sum / static_cast<double>(labels.size());
}

double f1_micro(std::span<const LabelCounts> labels) {
  LabelCounts all;
  for (const LabelCounts& one : labels) {
    all.hits += one.hits;
    all.false_alarms += one.false_alarms;
    all.misses += one.misses;
  }
  return all.f1();
}

double f1_weighted(std::span<const LabelCounts> labels) {
  double sum = 0;
  int64_t support = 0;
  for (const LabelCounts& one : labels) {
    sum += one.f1() * static_cast<double>(one.support());
    support += one.support();
  }
  return support == 0 ? 0 : sum / static_cast<double>(support);
}

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
      ++by_class_[truth[i]].hits;
    } else {
      ++by_class_[truth[i]].misses;
      ++by_class_[predicted[i]].false_alarms;
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

namespace {

std::vector<double> without_mean(std::span<const double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> centred(values.begin(), values.end());
  for (double& value : centred) value -= mean;
  return centred;
}

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

bool is_constant(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return value == values.front(); });
}

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

double pearson_correlation(std::span<const double> x, std::span<const double> y) {
  ONEBIT_INVARIANT(x.size() == y.size());
  if (x.size() < 2 || is_constant(x) || is_constant(y)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> a = without_mean(x), b = without_mean(y);
  const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  return std::clamp(product / norm_of(a) / norm_of(b), -1.0, 1.0);
}

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) ranks[order[begin]] = rank;
  }
  return ranks;
}

double spearman_correlation(std::span<const double> x, std::span<const double> y) {
  // What is no number has no rank, and sorting it would be undefined.
  if (has_nan(x) || has_nan(y)) return std::numeric_limits<double>::quiet_NaN();
  return pearson_correlation(mean_ranks(x), mean_ranks(y));
}

double mean_squared_error(std::span<const double> x, std::span<const double> y) {
  ONEBIT_INVARIANT(x.size() == y.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum / static_cast<double>(x.size());
}

}  // namespace onebit::metrics
