// A fine-tuned classifier on the disk, of texts or of words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/training/model_folder.h"

namespace onebit::tasks {

struct ClassifierKind {
  const char* architecture;  // transformers' class
  const char* items;         // what it labels: "texts"
  const char* command;       // trains one: "onebit classify train"
};

// Describes the model at `path`, as find_model_folder() takes it. Errors: a model of another kind;
// fewer positions than `max_sequence_length`.
training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind,
                                               int64_t max_sequence_length);

// By output: the two defaults of transformers where config.json names none.
std::vector<std::string> labels_of(const training::ClassifierDescription& classifier);

}  // namespace onebit::tasks
