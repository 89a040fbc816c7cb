// The keys of all recipes that fine-tune a model: the engine's (engine/config.h), the section
// `model` with the settings that the checkpoint leaves open, and in `data` the length of training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/session_config.h"

namespace onebit::finetune {

struct FineTuningConfig {
  engine::EngineConfig engine;  // run.steps is 0 unless the recipe gives it
  training::SessionConfig session;
  model::MemoryOptions memory;
  // Override the checkpoint's dropout, the last one that before the head.
  std::optional<double> hidden_dropout, attention_dropout, classifier_dropout;
  bool is_length_chosen = false;  // the recipe says how long a sequence may be
  double epochs = 3;              // unless run.steps is given
  int64_t prediction_batch = 32;
};

// Lists the key "task", the engine's keys and the section `model`. Error: the recipe is of another
// task than `task`.
void read_fine_tuning(Keys& recipe, const char* task, FineTuningConfig& config);
// Lists the key of `model` with the dropout before a head. `otherwise` is what its absence means.
void read_classifier_dropout(Keys& recipe, FineTuningConfig& config,
                             const char* otherwise = "the checkpoint's, else hidden_dropout_prob");
// Lists the key `skip_bad_records` of the section `data`.
void read_bad_records(Keys& data, corpus::LeftOut& left_out);
// Lists the key `max_sequence_length` of the section `data`: at least `least`, as `meaning` says.
void read_sequence_length(Keys& data, int64_t least, const char* meaning, int64_t& length,
                          FineTuningConfig& config);
// Lists the keys `epochs` and `prediction_batch` of the section `data`. `batch_meaning` describes
// the latter. Reports a recipe with both run.steps and epochs.
void read_training_length(Keys& data, const char* batch_meaning, FineTuningConfig& config);

// The value of "epochs" in `onebit inspect`: null if the recipe contains run.steps.
Json epochs_shown(const FineTuningConfig& config);

// The checkpoint's description with the recipe's dropout.
training::ModelDescription with_recipe(const FineTuningConfig& config,
                                       training::ModelDescription checkpoint);

// The length of a sequence: `usual`, or the model's positions if it has fewer and the recipe does
// not give the key, which `decisions` then reports. Error, with the recipe's place: fewer positions
// than a length that it gives.
int64_t fitting_length(const FineTuningConfig& config, int64_t usual,
                       const training::ModelDescription& model,
                       std::vector<std::string>& decisions);

// The recipe of the run or checkpoint at `model`, unless it is of another task than `task`. Absent:
// there is no such recipe.
std::optional<Recipe> recipe_of_run(const Path& model, const char* task);

// How a model is used: recipe_of_run() with the overrides of a command. For a model folder, the
// overrides alone.
Recipe recipe_of_model(const Path& model, const char* task,
                       const std::vector<std::string>& overrides);

// What a command leaves out that writes an output for every record: nothing. Error: the recipe asks
// for something else.
corpus::LeftOut require_none_left_out(corpus::LeftOut left_out);

}  // namespace onebit::finetune
