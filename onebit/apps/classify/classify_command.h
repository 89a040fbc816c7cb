// The subcommands of `onebit classify`, one source file each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/classify/classifier.h"
#include "onebit/apps/classify/classify_config.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/key_options.h"

namespace onebit::classify {

// Declares the group `onebit classify`.
void add_classify(commands::Command program, commands::Action& chosen);
void add_classify_train(commands::Command classify, commands::Action& chosen);
void add_classify_predict(commands::Command classify, commands::Action& chosen);
void add_classify_evaluate(commands::Command classify, commands::Action& chosen);

// --format, --header, --no-header, --text, --text-pair, and --label if `with_label`.
void add_classify_file_options(const commands::KeyOptions& keys, bool with_label);

// Reports in one line that `source` numbers the outputs of a model whose labels have no names.
void report_numbered_labels(const std::string& source, const std::vector<std::string>& labels);

// --glue.
commands::Option add_glue_option(commands::Command command, std::string& name,
                                 const std::string& about);

// A model, and how its examples are read and judged: as in the run that made the model, unless the
// command line gives something else.
struct ClassifyModelOptions {
  std::string model;
  commands::Overrides overrides;
  std::optional<DType> compute;

  // The recipe of the model's run with the overrides.
  ClassifyConfig config() const;
  ClassifierOptions prediction(const ClassifyConfig& config) const;
};

// --model, --max-sequence-length, --prediction-batch, --compute, --threshold, --label-separator,
// --set.
void add_classify_model_options(commands::Command command, const commands::KeyOptions& keys,
                                ClassifyModelOptions& options);

}  // namespace onebit::classify
