// The parts of `onebit tag`, one file each.
#pragma once

#include <optional>
#include <string>

#include "onebit/cli/command_list.h"
#include "onebit/tag/sentence_reader.h"
#include "onebit/tasks/tag_prediction.h"

namespace onebit::cli {

void add_tag_train(Command tag, Action& chosen);
void add_tag_predict(Command tag, Action& chosen);
void add_tag_evaluate(Command tag, Action& chosen);

// How a file is read, as the command line says it.
struct TagFileOptions {
  std::string format = "auto", tokens, tags, text, entities, scheme;

  // Overwrites in `layout` only what was given.
  void apply(tag::FileLayout& layout) const;
};

// --format, --tokens, --text, --scheme, and --tags, --entities where there are tags.
void add_tag_file_options(Command command, TagFileOptions& options, bool with_tags);

// A model, and how its sentences are read: as the run says that made the model, and the command
// line.
struct TagModelOptions {
  std::string model;
  tasks::TagPredictionOptions prediction;
  std::optional<int64_t> max_sequence_length, stride;

  // After settle(): all of it.
  tag::FileLayout layout;

  // Takes what was not given from the run; `files` goes before it.
  void settle(const TagFileOptions& files);
  // The scheme of the labels: the one that was given, else the one that they show, and the
  // sentences.
  tag::Scheme scheme(const std::vector<std::string>& labels) const;
  tag::Scheme scheme(const std::vector<std::string>& labels, const tag::Sentences& sentences) const;
};

// --model, --max-sequence-length, --stride, --batch.
void add_tag_model_options(Command command, TagModelOptions& options);

// Says what reading and cutting into sequences did to the sentences of `source`.
void report_reading(const tasks::TagPredictor& predictor, const std::string& source,
                    int64_t widened);

}  // namespace onebit::cli
