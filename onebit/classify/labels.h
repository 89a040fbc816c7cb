// The labels of a classification: their names, and what the labels of examples mean.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/classify/example_reader.h"

namespace onebit::classify {

// transformers' problem_type.
enum class Problem {
  kSingleLabel,  // "single_label_classification": one of several classes
  kMultiLabel,   // "multi_label_classification": any number of labels
  kRegression,   // "regression": a number
};

const char* name_of(Problem problem);
// Empty: another word.
std::optional<Problem> problem_named(std::string_view name);

// Labels of an example in one field of TSV and CSV, where there may be several.
struct LabelFormat {
  Problem problem = Problem::kSingleLabel;
  std::string separator = ",";
};

// The labels that occur: whole numbers by value, others by their bytes; "LABEL_0" for regression.
// Errors: a label is empty or of another kind, with file:line; fewer than two classes.
std::vector<std::string> find_labels(const Examples& examples, const LabelFormat& format);

// What the model is to predict of each example.
struct Targets {
  Problem problem = Problem::kSingleLabel;
  int64_t outputs = 0;           // of the model
  std::vector<int32_t> classes;  // kSingleLabel: [examples]
  std::vector<float> values;     // else: [examples, outputs]

  int64_t examples() const;
};

// Errors, with file:line: a label that is not one of `labels`, which are listed; no number where
// one is to be predicted; not finite.
Targets targets_of(const Examples& examples, const LabelFormat& format,
                   const std::vector<std::string>& labels);

// How many examples have each label.
std::vector<int64_t> label_counts(const Targets& targets);

// Weights that give every class the same total weight (kSingleLabel), or a label's presence that of
// its absence (kMultiLabel). Error: a label that no example has, or that all have (kMultiLabel).
std::vector<double> balanced_weights(const Targets& targets, const std::vector<std::string>& labels,
                                     const std::string& source);
// By name; labels that are not named weigh 1. Error: a name that is no label.
std::vector<double> named_weights(const std::map<std::string, double>& weights,
                                  const std::vector<std::string>& labels);
// kSingleLabel: scaled so that the mean weight of the examples is 1, and the loss is of the size
// that it has without weights.
std::vector<float> scaled_weights(std::vector<double> weights, const Targets& targets);

// The index of a label; Error: it is none, with those that are.
int64_t index_of_label(const std::vector<std::string>& labels, const std::string& label,
                       const std::string& place);

}  // namespace onebit::classify
