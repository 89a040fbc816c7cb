// Evaluates vectors of texts: by their agreement with human similarity scores, or by retrieving
// matching texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/metric.h"

namespace onebit::embed {

// The metrics of a kind, first the default for the best model. Scored pairs, by the agreement of
// cosines and scores: spearman, pearson, mse. Other kinds, by the rank of an anchor's positive,
// ordered by cosine, among the positives and negatives of the whole file: mrr (the mean of 1 /
// rank), accuracy (rank 1), recall_at_10 (rank at most 10). Triplets also have triplet_accuracy:
// the positive is nearer than the triplet's own negative.
std::span<const metrics::MetricName> metric_names(Kind kind);

struct Scores {
  Kind kind = Kind::kPairs;
  int64_t examples = 0;
  std::vector<metrics::Metric> metrics;  // in the order of metric_names()
};

// `vectors`, f32 [texts, hidden], belong to examples.texts. Equal texts are one candidate. Other
// positives of the same anchor text are not rivals of its own. A rival with the same cosine counts
// as nearer.
Scores score(const Examples& examples, std::span<const float> vectors, int threads);

std::string text_of(const Scores& scores);
Json json_of(const Scores& scores);

}  // namespace onebit::embed
