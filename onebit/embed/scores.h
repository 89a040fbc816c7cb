// How good vectors of texts are: by the similarities that people gave, or by finding what belongs
// together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/base/json_fwd.h"
#include "onebit/embed/example_reader.h"
#include "onebit/metrics/metric.h"

namespace onebit::embed {

// The metrics of a kind, the one that decides by default first. Of scored pairs how the cosines
// follow the scores: spearman, pearson, mse. Of the others how an anchor finds its positive among
// the positives and negatives of the whole file, by its cosine: mrr (the mean of 1 / its place),
// accuracy (it is the first), recall_at_10 (it is among the first ten). Of triplets also
// triplet_accuracy: it is nearer than the triplet's own negative.
std::span<const metrics::MetricName> metric_names(Kind kind);

struct Scores {
  Kind kind = Kind::kPairs;
  int64_t examples = 0;
  std::vector<metrics::Metric> metrics;  // in the order of metric_names()
};

// `vectors` f32 [texts, hidden] are those of examples.texts. Texts that are the same are one
// candidate; other positives of the same anchor text are no rivals of its own; a rival with the
// same cosine counts as nearer.
Scores score(const Examples& examples, std::span<const float> vectors, int threads);

std::string text_of(const Scores& scores);
Json json_of(const Scores& scores);

}  // namespace onebit::embed
