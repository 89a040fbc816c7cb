// The figures of an evaluation: by name, as tables for a terminal, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/classify/labels.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::classify {

struct ScoreOptions {
  int64_t positive = 1;    // kSingleLabel with two labels: the class of "f1"
  double threshold = 0.5;  // kMultiLabel: threshold of the probability
};

// The metrics of a problem, first the default for the best model. "f1" only with two labels.
std::span<const metrics::MetricName> metric_names(Problem problem, int64_t outputs);

struct Scores {
  Problem problem = Problem::kSingleLabel;
  std::vector<std::string> labels;
  int64_t examples = 0;
  std::vector<metrics::Metric> metrics;         // in the order of metric_names()
  std::vector<metrics::LabelCounts> by_label;   // empty for kRegression
  std::optional<metrics::Confusion> confusion;  // for kSingleLabel
};

// `outputs` are the model's, [examples, targets.outputs].
Scores score(const Targets& targets, const std::vector<std::string>& labels,
             std::span<const float> outputs, const ScoreOptions& options);

// Metrics. Precision, recall and F1 of each label. The confusion matrix.
std::string text_of(const Scores& scores);
Json json_of(const Scores& scores);

}  // namespace onebit::classify
