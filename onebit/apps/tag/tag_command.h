// The subcommands of `onebit tag`, one source file each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/tag/tag_config.h"
#include "onebit/apps/tag/tagger.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/key_options.h"

namespace onebit::tag {

// Declares the group `onebit tag`.
void add_tag(commands::Command program, commands::Action& chosen);
void add_tag_train(commands::Command tag, commands::Action& chosen);
void add_tag_predict(commands::Command tag, commands::Action& chosen);
void add_tag_evaluate(commands::Command tag, commands::Action& chosen);

// --format, --tokens, --text, --scheme, --comments, and --tags, --entities if `with_tags`.
void add_tag_file_options(const commands::KeyOptions& keys, bool with_tags);

// A model, and how its sentences are read: as in the run that made the model, unless the command
// line gives something else.
struct TagModelOptions {
  std::string model;
  commands::Overrides overrides;
  std::optional<DType> compute;

  // The recipe of the model's run with the overrides.
  TagConfig config() const;
  TaggerOptions prediction(const TagConfig& config) const;
};

// --model, --max-sequence-length, --stride, --prediction-batch, --compute, --set.
void add_tag_model_options(commands::Command command, const commands::KeyOptions& keys,
                           TagModelOptions& options);

// The scheme of a model's labels: the one of the recipe, otherwise the one derived from the labels,
// and from `sentences`. `model` is for errors.
Scheme scheme_of(const TagConfig& config, const std::vector<std::string>& labels,
                 const std::string& model);
Scheme scheme_of(const TagConfig& config, const std::vector<std::string>& labels,
                 const std::string& model, const Sentences& sentences);

// Logs how reading and cutting into sequences changed the sentences of `source`. `widened` entities
// were extended to whole words. `notes` are the reader's.
void report_reading(const Tagger& predictor, const std::string& source, int64_t widened,
                    const std::vector<std::string>& notes);

}  // namespace onebit::tag
