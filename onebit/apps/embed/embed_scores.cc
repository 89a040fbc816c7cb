#include "onebit/apps/embed/embed_scores.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::embed {
namespace {

using metrics::MetricName;

constexpr MetricName kOfPairs[] = {{"mrr"}, {"accuracy"}, {"recall_at_10"}};
constexpr MetricName kOfTriplets[] = {
    {"triplet_accuracy"}, {"mrr"}, {"accuracy"}, {"recall_at_10"}};
constexpr MetricName kOfScored[] = {{"spearman"}, {"pearson"}, {"mse", true}};

constexpr int64_t kFirstPlaces = 10;
constexpr int64_t kAnchorsOfBlock = 32;  // which a cache holds, with a candidate

// The rows of `vectors` scaled to length 1. A row of zeros remains zero.
std::vector<float> units_of(std::span<const float> vectors, size_t hidden) {
  std::vector<float> units(vectors.begin(), vectors.end());
  for (size_t first = 0; first < units.size(); first += hidden) {
    double sum = 0;
    for (size_t i = first; i < first + hidden; ++i) sum += double{units[i]} * double{units[i]};
    const double length = sum == 0 ? 1 : std::sqrt(sum);
    for (size_t i = first; i < first + hidden; ++i) {
      units[i] = static_cast<float>(double{units[i]} / length);
    }
  }
  return units;
}

// Sums in as many chains as vector registers have lanes, in a fixed order.
float product(const float* a, const float* b, size_t count) {
  constexpr size_t kChains = 16;
  float sums[kChains] = {};
  size_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    for (size_t chain = 0; chain < kChains; ++chain) sums[chain] += a[i + chain] * b[i + chain];
  }
  for (; i < count; ++i) sums[i % kChains] += a[i] * b[i];
  float sum = 0;
  for (const float one : sums) sum += one;
  return sum;
}

// Numbers texts: equal texts have the same number.
class Numbers {
 public:
  uint32_t of(std::string_view text) {
    return known_.try_emplace(text, static_cast<uint32_t>(known_.size())).first->second;
  }

 private:
  std::unordered_map<std::string_view, uint32_t> known_;
};

// Ranks the positives of anchors.
class Retrieval {
 public:
  Retrieval(const Examples& examples, std::span<const float> vectors)
      : examples_(examples),
        hidden_(vectors.size() / examples.texts.all.size()),
        units_(units_of(vectors, hidden_)) {
    Numbers candidates, anchors;
    for (int64_t example = 0; example < examples.size(); ++example) {
      const uint32_t anchor = anchors.of(examples.text(example, 0));
      if (anchor == positives_.size()) positives_.emplace_back();
      anchor_of_.push_back(anchor);
      for (int64_t part = 1; part < examples.parts(); ++part) {
        const uint32_t candidate = candidates.of(examples.text(example, part));
        if (candidate == rows_.size()) rows_.push_back(example * examples.parts() + part);
        if (part > 1) continue;
        positives_[anchor].push_back(candidate);
      }
    }
    for (auto& list : positives_) std::sort(list.begin(), list.end());
  }

  // The ranks of the positives of examples [begin, end), from 1, into `places`. A candidate is read
  // once for all of them.
  void place_positives(int64_t begin, int64_t end, int64_t* places) const {
    std::vector<float> own;
    for (int64_t example = begin; example < end; ++example) {
      const int64_t first = example * examples_.parts();
      own.push_back(product(row(first), row(first + 1), hidden_));
      places[example - begin] = 1;
    }
    for (size_t candidate = 0; candidate < rows_.size(); ++candidate) {
      for (int64_t i = 0; i < end - begin; ++i) {
        const float* anchor = row((begin + i) * examples_.parts());
        // The comparison is false for NaN, so that a vector with NaN gains nothing.
        if (product(anchor, row(rows_[candidate]), hidden_) < own[static_cast<size_t>(i)]) continue;
        const auto& positives = positives_[anchor_of_[static_cast<size_t>(begin + i)]];
        const auto number = static_cast<uint32_t>(candidate);
        places[i] += std::binary_search(positives.begin(), positives.end(), number) ? 0 : 1;
      }
    }
  }
  bool is_nearer_than_negative(int64_t example) const {
    const int64_t first = example * examples_.parts();
    return product(row(first), row(first + 1), hidden_) >
           product(row(first), row(first + 2), hidden_);
  }

 private:
  const float* row(int64_t text) const {
    return units_.data() + static_cast<size_t>(text) * hidden_;
  }

  const Examples& examples_;
  size_t hidden_;
  std::vector<float> units_;
  std::vector<int64_t> rows_;                     // of candidates, in units_
  std::vector<uint32_t> anchor_of_;               // by example
  std::vector<std::vector<uint32_t>> positives_;  // by anchor: candidates
};

void score_retrieval(const Examples& examples, std::span<const float> vectors, int threads,
                     Scores& scores) {
  const Retrieval retrieval(examples, vectors);
  std::vector<int64_t> places(static_cast<size_t>(examples.size()));
  parallel_for(threads, examples.size(), kAnchorsOfBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kAnchorsOfBlock) {
      retrieval.place_positives(i, std::min(i + kAnchorsOfBlock, end),
                                places.data() + static_cast<size_t>(i));
    }
  });
  double first = 0, reciprocal = 0, early = 0, nearer = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    first += places[i] == 1 ? 1 : 0;
    early += places[i] <= kFirstPlaces ? 1 : 0;
    reciprocal += 1 / static_cast<double>(places[i]);
    const bool is_triplet = examples.kind == Kind::kTriplets;
    nearer += is_triplet && retrieval.is_nearer_than_negative(static_cast<int64_t>(i)) ? 1 : 0;
  }
  const auto count = static_cast<double>(places.size());
  if (examples.kind == Kind::kTriplets)
    scores.metrics.push_back({"triplet_accuracy", nearer / count});
  scores.metrics.push_back({"mrr", reciprocal / count});
  scores.metrics.push_back({"accuracy", first / count});
  scores.metrics.push_back({"recall_at_10", early / count});
}

void score_similarity(const Examples& examples, std::span<const float> vectors, Scores& scores) {
  const size_t hidden = vectors.size() / examples.texts.all.size();
  const std::vector<float> units = units_of(vectors, hidden);
  std::vector<double> cosines;
  for (size_t first = 0; first < units.size(); first += 2 * hidden) {
    double sum = 0;
    for (size_t i = first; i < first + hidden; ++i) {
      sum += double{units[i]} * double{units[i + hidden]};
    }
    cosines.push_back(sum);
  }
  const std::vector<double> truth(examples.scores.begin(), examples.scores.end());
  scores.metrics.push_back({"spearman", metrics::spearman_correlation(cosines, truth)});
  scores.metrics.push_back({"pearson", metrics::pearson_correlation(cosines, truth)});
  scores.metrics.push_back({"mse", metrics::mean_squared_error(cosines, truth)});
}

}  // namespace

std::span<const MetricName> metric_names(Kind kind) {
  switch (kind) {
    case Kind::kPairs:
      return kOfPairs;
    case Kind::kTriplets:
      return kOfTriplets;
    case Kind::kScored:
      return kOfScored;
  }
  return {};
}

Scores score(const Examples& examples, std::span<const float> vectors, int threads) {
  ONEBIT_INVARIANT(examples.size() > 0 && vectors.size() % examples.texts.all.size() == 0);
  Scores scores{.kind = examples.kind, .examples = examples.size(), .metrics = {}};
  if (examples.kind == Kind::kScored) {
    score_similarity(examples, vectors, scores);
  } else {
    score_retrieval(examples, vectors, threads, scores);
  }
  return scores;
}

std::string text_of(const Scores& scores) {
  metrics::TextTable table;
  table.align_right({1});
  table.add_row({name_of(scores.kind), std::to_string(scores.examples)});
  for (const metrics::Metric& metric : scores.metrics) {
    table.add_row({metric.name, fmt::format("{:.4f}", metric.value)});
  }
  return table.text() + metrics::nan_note_of(scores.metrics);
}

Json json_of(const Scores& scores) {
  Json figures = Json::object();
  for (const metrics::Metric& metric : scores.metrics) {
    figures[metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json();
  }
  return {{"kind", name_of(scores.kind)},
          {"examples", scores.examples},
          {"metrics", std::move(figures)}};
}

}  // namespace onebit::embed
