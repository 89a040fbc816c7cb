// The labels of a classifier that is fine-tuned, and whether a checkpoint's classifier has them.
#pragma once

#include <string>
#include <vector>

#include "onebit/training/model_folder.h"

namespace onebit::tasks {

// Error: the recipe's key `key` gives a label twice, or fewer than `least`; `place` names the
// recipe.
void check_given_labels(const std::vector<std::string>& labels, size_t least,
                        const std::string& place, const std::string& key);

struct LabelChoice {
  std::vector<std::string> labels;  // by output
  bool keeps_head = false;          // the checkpoint's classifier is trained on
  std::string decision;             // in words; empty where the checkpoint has no classifier
};

// A classifier of the same labels is trained on, in the order of its outputs unless `labels` are in
// an order that was asked for. `has_classifier`: the checkpoint has one of the kind that is
// trained.
LabelChoice choose_labels(std::vector<std::string> labels, bool order_is_given,
                          const training::ClassifierDescription& checkpoint, bool has_classifier);

}  // namespace onebit::tasks
