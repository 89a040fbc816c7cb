// The section `model` of a recipe that fine-tunes a classifier: what the checkpoint leaves open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/base/keys.h"
#include "onebit/model/memory_plan.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

struct ClassifierModel {
  model::MemoryOptions memory;
  // Instead of the checkpoint's.
  std::optional<double> hidden_dropout, attention_dropout, classifier_dropout;
};

// Lists the keys of the section.
ClassifierModel read_classifier_model(Keys section);

// The description with this dropout. Error, with the recipe's `place`: fewer positions than
// `max_sequence_length`.
training::ModelDescription with_recipe(const ClassifierModel& model, int64_t max_sequence_length,
                                       const std::string& place,
                                       training::ModelDescription checkpoint);

}  // namespace onebit::tasks
