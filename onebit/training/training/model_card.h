// README.md of a model folder, as model hubs show it: what the model is, its data and how it was
// trained.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/json.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/rows.h"

namespace onebit::training {

struct ModelCard {
  std::string task;  // the recipe's
  int64_t step = 0, steps = 0, samples = 0;
  std::string initial_values;  // of the run, however often it was resumed; empty: not known
  Rows data;                   // as in the start table
  Json data_identity;          // checksums, as in a checkpoint's client state
  std::string result;          // of the last evaluation, in words; empty: there was none
  int64_t result_step = 0;
  Json recipe;
};

std::string model_card_text(const ModelCard& card, const ModelDescription& description);
// Writes README.md beside the model's other files.
void write_model_card(const Path& model_folder, const ModelCard& card,
                      const ModelDescription& description);

}  // namespace onebit::training
