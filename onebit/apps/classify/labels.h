// The labels of a classification: their names, and the targets of examples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/training/finetune/example_reader.h"

namespace onebit::classify {

// transformers' problem_type.
enum class Problem {
  kSingleLabel,  // "single_label_classification": one of several classes
  kMultiLabel,   // "multi_label_classification": any number of labels
  kRegression,   // "regression": a number
};

const char* name_of(Problem problem);
// Empty: an unknown name.
std::optional<Problem> problem_named(std::string_view name);

// The format of an example's labels in one field of TSV and CSV, which may contain several.
struct LabelFormat {
  Problem problem = Problem::kSingleLabel;
  std::string separator = ",";
  // The labels of the model or of the recipe. Empty: those that the file has.
  std::vector<std::string> known = {};
};

// Reads a whole file of labelled texts. Errors: as for finetune::read_examples(), among them an
// example whose label is empty, a mark of a missing value ("nan") or of another kind than `format`
// has, and multi-hot labels. Words like "NA" are such marks where the other labels are numbers.
finetune::Examples read_labelled(const Path& path, const finetune::FileLayout& layout,
                                 const LabelFormat& format);

// The labels that occur, as label_names() gives them, and "LABEL_0" for regression. Errors: a label
// is empty or of another kind, with file:line, or fewer than two classes.
std::vector<std::string> find_labels(const finetune::Examples& examples, const LabelFormat& format);

// The model's targets for all examples.
struct Targets {
  Problem problem = Problem::kSingleLabel;
  int64_t outputs = 0;           // of the model
  std::vector<int32_t> classes;  // kSingleLabel: [examples]
  std::vector<float> values;     // else: [examples, outputs]

  int64_t examples() const;
};

// Errors, with file:line: a label that is not one of `labels`, which are listed, not a number where
// one is required, not finite.
Targets targets_of(const finetune::Examples& examples, const LabelFormat& format,
                   const std::vector<std::string>& labels);

// The labels by which a file names the outputs of a model with `labels`. Where these are only
// transformers' default names, a file may number the outputs: then "0", "1"..., else `labels`.
// Errors: as targets_of(), except for labels that are not the model's.
std::vector<std::string> labels_in_file(const finetune::Examples& examples,
                                        const LabelFormat& format,
                                        const std::vector<std::string>& labels);
// "0", "1"... for `count` outputs.
std::vector<std::string> numbered_labels(size_t count);

// The number of examples with each label.
std::vector<int64_t> label_counts(const Targets& targets);

// Weights that give every class the same total weight (kSingleLabel), or a label's presence as much
// as its absence (kMultiLabel). Error: a label that no example has, or that all have (kMultiLabel).
std::vector<double> balanced_weights(const Targets& targets, const std::vector<std::string>& labels,
                                     const std::string& source);
// Weights by name. Labels without a weight get 1. Error: a name that is not a label.
std::vector<double> named_weights(const std::map<std::string, double>& weights,
                                  const std::vector<std::string>& labels);
// kSingleLabel: scales the weights so that their mean over the examples is 1 and the loss has the
// same magnitude as without weights.
std::vector<float> scaled_weights(std::vector<double> weights, const Targets& targets);

// The index of a label. Error: `label` is not in `labels`, which are listed.
int64_t index_of_label(const std::vector<std::string>& labels, const std::string& label,
                       const std::string& place);

}  // namespace onebit::classify
