#include "onebit/apps/tag/tag_scores.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/tag_set.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::tag {
namespace {

using metrics::LabelCounts;
using metrics::MetricName;

constexpr MetricName kOfEntities[] = {
    {"f1"},        {"precision"},        {"recall"},        {"f1_macro"}, {"f1_weighted"},
    {"f1_strict"}, {"precision_strict"}, {"recall_strict"}, {"accuracy"}, {"loss", true}};
constexpr MetricName kOfTags[] = {{"accuracy"}, {"f1_macro"}, {"f1_weighted"}, {"loss", true}};

using Counts = std::map<std::string, LabelCounts>;
using Tags = std::vector<std::string>;

// Entities are in order and do not overlap.
bool contains(const std::vector<Entity>& entities, const Entity& wanted) {
  const auto found =
      std::partition_point(entities.begin(), entities.end(),
                           [&](const Entity& entity) { return entity.first < wanted.first; });
  return found != entities.end() && *found == wanted;
}

void count_entities(const std::vector<Entity>& truth, const std::vector<Entity>& predicted,
                    Counts& counts) {
  for (const Entity& entity : truth) {
    LabelCounts& of_type = counts[entity.type];
    ++(contains(predicted, entity) ? of_type.hits : of_type.misses);
  }
  for (const Entity& entity : predicted) {
    if (!contains(truth, entity)) ++counts[entity.type].false_alarms;
  }
}

std::vector<CountedLabel> counted_labels(const Counts& counts) {
  std::vector<CountedLabel> list;
  for (const auto& [label, of_label] : counts) list.push_back({label, of_label});
  return list;
}

std::vector<LabelCounts> counts_of(const std::vector<CountedLabel>& labels) {
  std::vector<LabelCounts> counts;
  for (const CountedLabel& label : labels) counts.push_back(label.counts);
  return counts;
}

LabelCounts total_of(const std::vector<CountedLabel>& labels) {
  LabelCounts all;
  for (const CountedLabel& label : labels) {
    all.hits += label.counts.hits;
    all.false_alarms += label.counts.false_alarms;
    all.misses += label.counts.misses;
  }
  return all;
}

void score_entities(const Sentences& sentences, std::span<const Tags> predicted, double accuracy,
                    Scores& scores) {
  Counts forgiving, strict;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const Tags& truth = sentences.all[i].tags;
    count_entities(entities_of(truth), entities_of(predicted[i]), forgiving);
    count_entities(strict_entities_of(truth, scores.scheme),
                   strict_entities_of(predicted[i], scores.scheme), strict);
  }
  scores.by_label = counted_labels(forgiving);
  scores.by_label_strict = counted_labels(strict);
  const LabelCounts all = total_of(scores.by_label), all_strict = total_of(scores.by_label_strict);
  const std::vector<LabelCounts> counts = counts_of(scores.by_label);
  scores.metrics = {{"f1", all.f1()},
                    {"precision", all.precision()},
                    {"recall", all.recall()},
                    {"f1_macro", metrics::f1_macro(counts)},
                    {"f1_weighted", metrics::f1_weighted(counts)},
                    {"f1_strict", all_strict.f1()},
                    {"precision_strict", all_strict.precision()},
                    {"recall_strict", all_strict.recall()},
                    {"accuracy", accuracy}};
}

void score_plain(const Sentences& sentences, std::span<const Tags> predicted, double accuracy,
                 Scores& scores) {
  Counts of_tags;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const Tags& truth = sentences.all[i].tags;
    for (size_t word = 0; word < truth.size(); ++word) {
      if (truth[word] == predicted[i][word]) {
        ++of_tags[truth[word]].hits;
      } else {
        ++of_tags[truth[word]].misses;
        ++of_tags[predicted[i][word]].false_alarms;
      }
    }
  }
  scores.by_label = counted_labels(of_tags);
  const std::vector<LabelCounts> counts = counts_of(scores.by_label);
  scores.metrics = {{"accuracy", accuracy},
                    {"f1_macro", metrics::f1_macro(counts)},
                    {"f1_weighted", metrics::f1_weighted(counts)}};
}

std::string label_table(const std::vector<CountedLabel>& labels, const std::string& title,
                        const std::string& unit) {
  metrics::TextTable table({title, "precision", "recall", "F1", unit});
  table.align_right({1, 2, 3, 4});
  for (const CountedLabel& label : labels) {
    const LabelCounts& one = label.counts;
    table.add_row({label.label, fmt::format("{:.4f}", one.precision()),
                   fmt::format("{:.4f}", one.recall()), fmt::format("{:.4f}", one.f1()),
                   std::to_string(one.support())});
  }
  return table.text();
}

Json json_of_labels(const std::vector<CountedLabel>& labels) {
  Json list = Json::array();
  for (const CountedLabel& label : labels) {
    const LabelCounts& one = label.counts;
    list.push_back({{"label", label.label},
                    {"precision", one.precision()},
                    {"recall", one.recall()},
                    {"f1", one.f1()},
                    {"count", one.support()}});
  }
  return list;
}

}  // namespace

std::span<const MetricName> metric_names(Scheme scheme) {
  if (scheme == Scheme::kPlain) return kOfTags;
  return kOfEntities;
}

Scores score_tags(const Sentences& sentences, std::span<const Tags> predicted, Scheme scheme) {
  ONEBIT_INVARIANT(predicted.size() == sentences.all.size());
  Scores scores = {.scheme = scheme,
                   .sentences = static_cast<int64_t>(sentences.all.size()),
                   .words = sentences.words()};
  int64_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const Tags& truth = sentences.all[i].tags;
    ONEBIT_INVARIANT(predicted[i].size() == truth.size());
    for (size_t word = 0; word < truth.size(); ++word) {
      right += truth[word] == predicted[i][word] ? 1 : 0;
    }
  }
  const double accuracy =
      scores.words == 0 ? 0 : static_cast<double>(right) / static_cast<double>(scores.words);
  if (scheme == Scheme::kPlain) {
    score_plain(sentences, predicted, accuracy, scores);
  } else {
    score_entities(sentences, predicted, accuracy, scores);
  }
  return scores;
}

Scores score(const Judged& judged, Scheme scheme) {
  const size_t labels = judged.labels.size();
  ONEBIT_INVARIANT(judged.outputs.size() == judged.targets.size() * labels);
  std::vector<Tags> predicted;
  double loss = 0;
  size_t word = 0, with_target = 0;
  for (const Sentence& sentence : judged.sentences.all) {
    Tags& tags = predicted.emplace_back();
    for (size_t i = 0; i < sentence.words.size(); ++i, ++word) {
      const auto outputs = judged.outputs.subspan(word * labels, labels);
      tags.push_back(judged.labels[static_cast<size_t>(metrics::best_class(outputs))]);
      if (judged.targets[word] == kNoTarget) continue;
      loss += metrics::cross_entropy(outputs, judged.targets[word]);
      ++with_target;
    }
  }
  Scores scores = score_tags(judged.sentences, predicted, scheme);
  scores.metrics.push_back(
      {"loss", with_target == 0 ? 0 : loss / static_cast<double>(with_target)});
  return scores;
}

std::string text_of(const Scores& scores) {
  metrics::TextTable table;
  table.align_right({1});
  table.add_row({"sentences", std::to_string(scores.sentences)});
  table.add_row({"words", std::to_string(scores.words)});
  for (const metrics::Metric& metric : scores.metrics) {
    table.add_row({metric.name, fmt::format("{:.4f}", metric.value)});
  }
  if (scores.scheme == Scheme::kPlain) {
    return table.text() + "\n" + label_table(scores.by_label, "tag", "words");
  }
  return fmt::format("{}\n{}\n{}", table.text(), label_table(scores.by_label, "entity", "entities"),
                     label_table(scores.by_label_strict,
                                 fmt::format("strict {}", name_of(scores.scheme)), "entities"));
}

Json json_of(const Scores& scores) {
  Json figures = Json::object();
  for (const metrics::Metric& metric : scores.metrics) {
    figures[metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json();
  }
  Json json = {{"scheme", name_of(scores.scheme)},
               {"sentences", scores.sentences},
               {"words", scores.words},
               {"metrics", std::move(figures)},
               {"by_label", json_of_labels(scores.by_label)}};
  if (scores.scheme != Scheme::kPlain) {
    json["by_label_strict"] = json_of_labels(scores.by_label_strict);
  }
  return json;
}

}  // namespace onebit::tag
