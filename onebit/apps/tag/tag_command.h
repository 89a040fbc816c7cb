// The subcommands of `onebit tag`, one source file each.
#pragma once

#include <optional>
#include <string>

#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/apps/tag/tag_prediction.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::tag {

// Declares the group `onebit tag`.
void add_tag(commands::Command program, commands::Action& chosen);
void add_tag_train(commands::Command tag, commands::Action& chosen);
void add_tag_predict(commands::Command tag, commands::Action& chosen);
void add_tag_evaluate(commands::Command tag, commands::Action& chosen);

// How a file is read, as given on the command line.
struct TagFileOptions {
  std::string format = "auto", tokens, tags, text, entities, scheme, comments;

  // Overwrites in `layout` only what was given.
  void apply(FileLayout& layout) const;
};

// --format, --tokens, --text, --scheme, --comments, and --tags, --entities if `with_tags`.
void add_tag_file_options(commands::Command command, TagFileOptions& options, bool with_tags);

// A model, and how its sentences are read: as in the run that made the model, unless the command
// line gives something else.
struct TagModelOptions {
  std::string model;
  TagPredictionOptions prediction;
  std::optional<int64_t> max_sequence_length, stride;

  // The settings after settle().
  FileLayout layout;

  // Takes settings that were not given from the model's run; `files` takes precedence over the run.
  void settle(const TagFileOptions& files);
  // The scheme of the labels: the given one, otherwise the one derived from the labels, and from
  // `sentences`.
  Scheme scheme(const std::vector<std::string>& labels) const;
  Scheme scheme(const std::vector<std::string>& labels, const Sentences& sentences) const;
};

// --model, --max-sequence-length, --stride, --batch.
void add_tag_model_options(commands::Command command, TagModelOptions& options);

// Logs how reading and cutting into sequences changed the sentences of `source`; `widened` entities
// were extended to whole words; `notes` are those of the reader.
void report_reading(const TagPredictor& predictor, const std::string& source, int64_t widened,
                    const std::vector<std::string>& notes);

}  // namespace onebit::tag
