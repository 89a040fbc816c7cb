// Scores of predictions: a classifier's outputs as probabilities, hits and misses, confusion,
// agreement of numbers. Equal to scikit-learn's and scipy's, where a division by zero gives 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onebit::metrics {

// A classifier's outputs for one item as probabilities.
std::vector<double> softmax(std::span<const float> outputs);

// The index of the largest output, the first of equals.
int32_t best_class(std::span<const float> outputs);

// A probability or a value as files of predictions have it: with six decimals.
double rounded(double value);

// -log softmax(outputs)[target].
double cross_entropy(std::span<const float> outputs, int32_t target);

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

// A confusion matrix. Stores only the pairs that occur, so that its size grows with the examples
// and the classes, of which there may be tens of thousands.
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
  // At most `most` pairs of different classes, the most frequent ones first. Pairs of equal
  // frequency are sorted by (truth, predicted).
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

// NaN if one side is constant or contains NaN, or there are fewer than two pairs.
double pearson_correlation(std::span<const double> x, std::span<const double> y);
// Pearson's correlation of the ranks, where equal numbers share the mean of their ranks.
double spearman_correlation(std::span<const double> x, std::span<const double> y);
double mean_squared_error(std::span<const double> x, std::span<const double> y);

// Ranks from 1, in the order of `values`, which contain no NaN.
std::vector<double> mean_ranks(std::span<const double> values);

}  // namespace onebit::metrics
