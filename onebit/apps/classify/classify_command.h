// The subcommands of `onebit classify`, one source file each.
#pragma once

#include "onebit/training/commands/command_line.h"

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/classify/classify_config.h"
#include "onebit/apps/classify/classify_prediction.h"
#include "onebit/training/finetune/example_reader.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::classify {

// Declares the group `onebit classify`.
void add_classify(commands::Command program, commands::Action& chosen);
void add_classify_train(commands::Command classify, commands::Action& chosen);
void add_classify_predict(commands::Command classify, commands::Action& chosen);
void add_classify_evaluate(commands::Command classify, commands::Action& chosen);

// How a file is read, as given on the command line.
struct ClassifyFileOptions : finetune::RecordFileOptions {
  std::string text, text_pair, label;

  // Overwrites in `layout` only what was given.
  void apply(finetune::FileLayout& layout) const;
};

// Those of RecordFileOptions, --text, --text-pair, and --label if `with_label`.
void add_classify_file_options(commands::Command command, ClassifyFileOptions& options,
                               bool with_label);

// Reports in one line that `source` numbers the outputs of a model whose labels have no names.
void report_numbered_labels(const std::string& source, const std::vector<std::string>& labels);

// --glue.
commands::Option add_glue_option(commands::Command command, std::string& name,
                                 const std::string& about);

// A model, and how its examples are read and judged: as in the run that made the model, unless the
// command line gives something else.
struct ClassifyModelOptions {
  std::string model;
  ClassifyPredictionOptions prediction;
  std::optional<int64_t> max_sequence_length;
  std::optional<double> threshold;
  std::optional<std::string> label_separator;
  std::string positive_label;

  // The settings after settle().
  finetune::FileLayout layout;
  std::string separator = ",";
  double decided_threshold = 0.5;

  // Takes settings that were not given from the model's run; `files` takes precedence over the run.
  void settle(const ClassifyFileOptions& files);
};

// --model, --max-sequence-length, --batch, --threshold.
void add_classify_model_options(commands::Command command, ClassifyModelOptions& options);

}  // namespace onebit::classify
