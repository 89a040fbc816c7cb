// The results of an evaluation: by name, as tables for a terminal, as JSON. The results of entities
// equal seqeval's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/scheme.h"
#include "onebit/apps/tag/sentence.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::tag {

// The metrics of tags in a scheme, first the default for the best model: f1, precision and recall
// of all entities, tolerating ill-formed tags, "..._strict" without those, or the accuracy of plain
// tags. "loss" is the mean over the words that have a target.
std::span<const metrics::MetricName> metric_names(Scheme scheme);

struct CountedLabel {
  std::string label;  // the type of entities, or a tag
  metrics::LabelCounts counts;
};

struct Scores {
  Scheme scheme = Scheme::kPlain;
  int64_t sentences = 0, words = 0;
  std::vector<metrics::Metric> metrics;  // in the order of metric_names()
  // For labels in the truth or in predictions, sorted by bytes. Strict ones only for entities.
  std::vector<CountedLabel> by_label, by_label_strict;
};

// A model's `outputs` for every word, [words, labels], with the truth.
struct Judged {
  const Sentences& sentences;
  std::span<const int32_t> targets;  // [words], of TagSet. kNoTarget: without a loss
  const std::vector<std::string>& labels;
  std::span<const float> outputs;
};
Scores score(const Judged& judged, Scheme scheme);

// The same for known tags, without the loss: `predicted` has one tag per word of each sentence.
Scores score_tags(const Sentences& sentences, std::span<const std::vector<std::string>> predicted,
                  Scheme scheme);

// Metrics. Precision, recall and F1 of each label.
std::string text_of(const Scores& scores);
Json json_of(const Scores& scores);

}  // namespace onebit::tag
