// A fine-tuned classifier on disk, of texts or of words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

// The labels of a classifier to be fine-tuned, and whether a checkpoint's classifier has them.

// Error: the recipe's key `key` contains a label twice, or fewer labels than `least`. `place` names
// the recipe.
void check_given_labels(const std::vector<std::string>& labels, size_t least,
                        const std::string& place, const std::string& key);

struct LabelChoice {
  std::vector<std::string> labels;  // by output
  bool keeps_head = false;          // training continues the checkpoint's classifier
  std::string decision;             // in words. Empty if the checkpoint has no classifier
};

// Keeps the checkpoint's classifier if it has the same labels: in the order of its outputs, or, if
// `order_is_given`, only if its order is that of `labels`. `has_classifier`: the checkpoint has a
// classifier of the kind that is trained.
LabelChoice choose_labels(std::vector<std::string> labels, bool order_is_given,
                          const training::ClassifierDescription& checkpoint, bool has_classifier);

struct ClassifierKind {
  const char* architecture;  // transformers' class
  const char* items;         // what it labels: "texts"
  const char* command;       // trains one: "onebit classify train"
};

// Describes the model at `path`, resolved by find_model_folder(). Errors: a model of another kind,
// or two labels of one name.
training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind);

// The tokens of a sequence in training if nobody chooses.
inline constexpr int64_t kUsualLength = 128;
// The length with which the model at `path` reads texts: the chosen one, else that of the recipe of
// `task` of the run or checkpoint there. Another program's model reads as much as its tokenizer and
// its positions allow, as in transformers. Error: it has fewer positions than were chosen.
int64_t sequence_length(std::optional<int64_t> chosen,
                        const training::ModelDescription& description, const Path& path,
                        const char* task);

// The labels by output: the two defaults of transformers if config.json contains none.
std::vector<std::string> labels_of(const training::ClassifierDescription& classifier);

}  // namespace onebit::finetune
