// The parts of `onebit classify`, one file each.
#pragma once

#include <optional>
#include <string>

#include "onebit/classify/example_reader.h"
#include "onebit/cli/command_list.h"
#include "onebit/tasks/classify_config.h"
#include "onebit/tasks/classify_prediction.h"

namespace onebit::cli {

void add_classify_train(Command classify, Action& chosen);
void add_classify_predict(Command classify, Action& chosen);
void add_classify_evaluate(Command classify, Action& chosen);

// How a file is read, as the command line says it.
struct ClassifyFileOptions {
  std::string format = "auto", text, text_pair, label;
  std::optional<bool> header;

  // Overwrites in `layout` only what was given.
  void apply(classify::FileLayout& layout) const;
};

// --format, --text, --text-pair, --header, --no-header, and --label where there are labels.
void add_classify_file_options(Command command, ClassifyFileOptions& options, bool with_label);

// --glue.
Option add_glue_option(Command command, std::string& name, const std::string& about);

// A model, and how its examples are read and judged: as the run says that made the model, and the
// command line.
struct ClassifyModelOptions {
  std::string model;
  tasks::ClassifyPredictionOptions prediction;
  std::optional<int64_t> max_sequence_length;
  std::optional<double> threshold;
  std::optional<std::string> label_separator;
  std::string positive_label;

  // After settle(): all of it.
  classify::FileLayout layout;
  std::string separator = ",";
  double decided_threshold = 0.5;

  // Takes what was not given from the run; `files` goes before it.
  void settle(const ClassifyFileOptions& files);
};

// --model, --max-sequence-length, --batch, --threshold.
void add_classify_model_options(Command command, ClassifyModelOptions& options);

}  // namespace onebit::cli
