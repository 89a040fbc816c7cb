// The result of an evaluation during training, and when evaluations are made.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/metrics/metric.h"

namespace onebit::training {

// The result over all ranks.
struct Evaluation {
  std::string key;  // in metrics.jsonl: "held_out"
  // Logged under `key`, "a/b" as b in the object a. In TensorBoard as Validation/<name>.
  std::vector<metrics::Metric> metrics;
  std::string line;  // shown while the run continues
  // The record in the end table, in a kept model's evaluation.json and in checkpoints.
  std::vector<metrics::Metric> record;
};

// All false: there are no evaluations. Otherwise the values of the last step are evaluated as well.
struct EvaluationTimes {
  bool first_values = false;  // before the first step
  bool by_steps = false;      // every run.evaluate_every steps
  bool by_epochs = false;     // when an epoch's samples are consumed

  bool any() const { return first_values || by_steps || by_epochs; }
};

// The metric that is plotted against the step at the end of a run.
struct DrawnMetric {
  std::string name = "loss";   // of a step and of an evaluation
  std::string title = "loss";  // in the legend: "training loss", "held-out loss"
};

}  // namespace onebit::training
