// A fine-tuned classifier on disk, of texts or of words.
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

// Describes the model at `path`, resolved by find_model_folder(). Errors: a model of another kind;
// two labels of one name; fewer positions than `max_sequence_length`.
training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind,
                                               int64_t max_sequence_length);

// The labels by output: the two defaults of transformers if config.json contains none.
std::vector<std::string> labels_of(const training::ClassifierDescription& classifier);

}  // namespace onebit::tasks
