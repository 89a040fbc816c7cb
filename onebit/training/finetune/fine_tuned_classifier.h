// A fine-tuned classifier on disk, of texts or of words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

struct ClassifierKind {
  const char* architecture;  // transformers' class
  const char* items;         // what it labels: "texts"
  const char* command;       // trains one: "onebit classify train"
};

// Describes the model at `path`, resolved by find_model_folder(). Errors: a model of another kind;
// two labels of one name.
training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind);

// The tokens of a sequence if nobody chooses.
inline constexpr int64_t kUsualLength = 128;
// The chosen length, or the usual one, or that of a model with fewer positions. Error: the model at
// `path` has fewer positions than were chosen.
int64_t sequence_length(std::optional<int64_t> chosen, int64_t usual,
                        const training::ModelDescription& description, const Path& path);

// The labels by output: the two defaults of transformers if config.json contains none.
std::vector<std::string> labels_of(const training::ClassifierDescription& classifier);

}  // namespace onebit::finetune
