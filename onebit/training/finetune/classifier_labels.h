// The labels of a classifier to be fine-tuned, and whether a checkpoint's classifier has them.
#pragma once

#include <string>
#include <vector>

#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

// Error: the recipe's key `key` contains a label twice, or fewer labels than `least`; `place` names
// the recipe.
void check_given_labels(const std::vector<std::string>& labels, size_t least,
                        const std::string& place, const std::string& key);

struct LabelChoice {
  std::vector<std::string> labels;  // by output
  bool keeps_head = false;          // training continues the checkpoint's classifier
  std::string decision;             // in words; empty if the checkpoint has no classifier
};

// Keeps the checkpoint's classifier if it has the same labels: in the order of its outputs, or, if
// `order_is_given`, only if its order is that of `labels`. `has_classifier`: the checkpoint has a
// classifier of the kind that is trained.
LabelChoice choose_labels(std::vector<std::string> labels, bool order_is_given,
                          const training::ClassifierDescription& checkpoint, bool has_classifier);

}  // namespace onebit::finetune
