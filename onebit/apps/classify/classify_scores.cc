#include "onebit/apps/classify/classify_scores.h"

#include <cmath>

#include "onebit/apps/classify/classifier.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::classify {
namespace {

using metrics::Confusion;
using metrics::LabelCounts;
using metrics::MetricName;

// A matrix of more classes is not read in a terminal.
constexpr size_t kMaxClassesShown = 25;
// JSON has the whole matrix up to this number, then its largest entries.
constexpr size_t kMaxClassesInJson = 64;
constexpr size_t kMaxErrorsInJson = 200;

constexpr MetricName kTwoClasses[] = {{"accuracy"},    {"f1"},       {"f1_macro"},  {"f1_micro"},
                                      {"f1_weighted"}, {"matthews"}, {"loss", true}};
constexpr MetricName kManyClasses[] = {{"accuracy"},    {"f1_macro"}, {"f1_micro"},
                                       {"f1_weighted"}, {"matthews"}, {"loss", true}};
constexpr MetricName kManyLabels[] = {
    {"f1_micro"}, {"f1_macro"}, {"f1_weighted"}, {"accuracy"}, {"loss", true}};
constexpr MetricName kNumbers[] = {{"pearson"}, {"spearman"}, {"mse", true}, {"loss", true}};

using Figures = std::vector<metrics::Metric>;

void score_classes(const Targets& targets, std::span<const int32_t> predicted,
                   const ScoreOptions& options, Scores& scores, Figures& figures) {
  const Confusion confusion(targets.outputs, targets.classes, predicted);
  const std::vector<LabelCounts> occurring = confusion.of_classes();
  for (int64_t i = 0; i < targets.outputs; ++i) scores.by_label.push_back(confusion.of_class(i));
  figures.push_back({"accuracy", confusion.accuracy()});
  if (targets.outputs == 2) figures.push_back({"f1", confusion.of_class(options.positive).f1()});
  figures.push_back({"f1_macro", f1_macro(occurring)});
  figures.push_back({"f1_micro", f1_micro(occurring)});
  figures.push_back({"f1_weighted", f1_weighted(occurring)});
  figures.push_back({"matthews", confusion.matthews()});
  scores.confusion = confusion;
}

void score_labels(const Targets& targets, std::span<const float> outputs,
                  const ScoreOptions& options, Scores& scores, Figures& figures) {
  const auto columns = static_cast<size_t>(targets.outputs);
  scores.by_label.resize(columns);
  int64_t all_right = 0;
  for (size_t first = 0; first < outputs.size(); first += columns) {
    std::vector<bool> present(columns, false);
    for (const int32_t label : present_labels(outputs.subspan(first, columns), options.threshold)) {
      present[static_cast<size_t>(label)] = true;
    }
    bool is_right = true;
    for (size_t i = 0; i < columns; ++i) {
      const bool truth = targets.values[first + i] > 0;
      scores.by_label[i].hits += truth && present[i] ? 1 : 0;
      scores.by_label[i].false_alarms += !truth && present[i] ? 1 : 0;
      scores.by_label[i].misses += truth && !present[i] ? 1 : 0;
      is_right = is_right && truth == present[i];
    }
    all_right += is_right ? 1 : 0;
  }
  figures.push_back({"f1_micro", f1_micro(scores.by_label)});
  figures.push_back({"f1_macro", f1_macro(scores.by_label)});
  figures.push_back({"f1_weighted", f1_weighted(scores.by_label)});
  figures.push_back(
      {"accuracy", static_cast<double>(all_right) / static_cast<double>(targets.examples())});
}

void score_numbers(const Targets& targets, std::span<const float> outputs, Figures& figures) {
  const std::vector<double> truth(targets.values.begin(), targets.values.end());
  const std::vector<double> predicted(outputs.begin(), outputs.end());
  figures.push_back({"pearson", metrics::pearson_correlation(predicted, truth)});
  figures.push_back({"spearman", metrics::spearman_correlation(predicted, truth)});
  figures.push_back({"mse", metrics::mean_squared_error(predicted, truth)});
}

std::string label_table(const Scores& scores) {
  metrics::TextTable table({"label", "precision", "recall", "F1", "examples"});
  table.align_right({1, 2, 3, 4});
  for (size_t i = 0; i < scores.labels.size(); ++i) {
    const LabelCounts& one = scores.by_label[i];
    table.add_row({scores.labels[i], fmt::format("{:.4f}", one.precision()),
                   fmt::format("{:.4f}", one.recall()), fmt::format("{:.4f}", one.f1()),
                   std::to_string(one.support())});
  }
  return table.text();
}

std::string confusion_table(const Scores& scores) {
  const size_t classes = scores.labels.size();
  std::vector<std::string> header = {"true \\ predicted"};
  std::vector<size_t> numbers;
  for (size_t i = 0; i < classes; ++i) {
    header.push_back(scores.labels[i]);
    numbers.push_back(i + 1);
  }
  metrics::TextTable table(header);
  table.align_right(numbers);
  for (size_t truth = 0; truth < classes; ++truth) {
    std::vector<std::string> row = {scores.labels[truth]};
    for (size_t i = 0; i < classes; ++i) {
      row.push_back(std::to_string(
          scores.confusion->count(static_cast<int64_t>(truth), static_cast<int64_t>(i))));
    }
    table.add_row(std::move(row));
  }
  return table.text();
}

Json largest_errors(const Scores& scores) {
  Json list = Json::array();
  for (const Confusion::Pair& pair : scores.confusion->largest_errors(kMaxErrorsInJson)) {
    list.push_back({{"label", scores.labels[static_cast<size_t>(pair.truth)]},
                    {"predicted", scores.labels[static_cast<size_t>(pair.predicted)]},
                    {"examples", pair.examples}});
  }
  return list;
}

}  // namespace

std::span<const metrics::MetricName> metric_names(Problem problem, int64_t outputs) {
  switch (problem) {
    case Problem::kSingleLabel:
      if (outputs == 2) return kTwoClasses;
      return kManyClasses;
    case Problem::kMultiLabel:
      return kManyLabels;
    case Problem::kRegression:
      return kNumbers;
  }
  return {};
}

Scores score(const Targets& targets, const std::vector<std::string>& labels,
             std::span<const float> outputs, const ScoreOptions& options) {
  const auto columns = static_cast<size_t>(targets.outputs);
  const auto examples = static_cast<size_t>(targets.examples());
  ONEBIT_INVARIANT(outputs.size() == examples * columns && examples > 0);
  Scores scores = {.problem = targets.problem, .labels = labels, .examples = targets.examples()};
  double loss = 0;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < examples; ++i) {
    const auto of_example = outputs.subspan(i * columns, columns);
    loss += loss_of(targets, static_cast<int64_t>(i), of_example);
    if (targets.problem == Problem::kSingleLabel)
      classes.push_back(metrics::best_class(of_example));
  }
  if (targets.problem == Problem::kSingleLabel) {
    score_classes(targets, classes, options, scores, scores.metrics);
  } else if (targets.problem == Problem::kMultiLabel) {
    score_labels(targets, outputs, options, scores, scores.metrics);
  } else {
    score_numbers(targets, outputs, scores.metrics);
  }
  scores.metrics.push_back({"loss", loss / static_cast<double>(examples)});
  return scores;
}

std::string text_of(const Scores& scores) {
  metrics::TextTable table;
  table.align_right({1});
  table.add_row({"examples", std::to_string(scores.examples)});
  for (const metrics::Metric& metric : scores.metrics) {
    table.add_row({metric.name, fmt::format("{:.4f}", metric.value)});
  }
  std::string text = table.text() + metrics::nan_note_of(scores.metrics);
  if (scores.problem == Problem::kRegression) return text;
  text += fmt::format("\n{}", label_table(scores));
  if (!scores.confusion) return text;
  if (scores.labels.size() > kMaxClassesShown) {
    return text + fmt::format("\nThe {} of {} classes {} in the JSON (--json, --output).\n",
                              scores.labels.size() > kMaxClassesInJson
                                  ? "largest entries of the confusion matrix"
                                  : "confusion matrix",
                              scores.labels.size(),
                              scores.labels.size() > kMaxClassesInJson ? "are" : "is");
  }
  return fmt::format("{}\n{}", text, confusion_table(scores));
}

Json json_of(const Scores& scores) {
  Json figures = Json::object();
  for (const metrics::Metric& metric : scores.metrics) {
    figures[metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json();
  }
  Json json = {{"problem_type", name_of(scores.problem)},
               {"examples", scores.examples},
               {"metrics", std::move(figures)}};
  if (scores.problem == Problem::kRegression) return json;
  json["labels"] = scores.labels;
  for (size_t i = 0; i < scores.labels.size(); ++i) {
    const LabelCounts& one = scores.by_label[i];
    json["by_label"].push_back({{"label", scores.labels[i]},
                                {"precision", one.precision()},
                                {"recall", one.recall()},
                                {"f1", one.f1()},
                                {"examples", one.support()}});
  }
  if (!scores.confusion) return json;
  if (scores.labels.size() > kMaxClassesInJson) {
    json["confusion_largest"] = largest_errors(scores);
    return json;
  }
  for (int64_t truth = 0; truth < scores.confusion->classes(); ++truth) {
    Json row = Json::array();
    for (int64_t i = 0; i < scores.confusion->classes(); ++i) {
      row.push_back(scores.confusion->count(truth, i));
    }
    json["confusion"].push_back(std::move(row));
  }
  return json;
}

}  // namespace onebit::classify
