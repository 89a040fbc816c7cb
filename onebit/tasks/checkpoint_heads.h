// The heads of all tasks in checkpoints, and what a task takes of one: the encoder and its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

// Prefixes of the names of their tensors. A new task adds its own here and to kHeads of
// checkpoint_heads.cc, and the others leave it out.
inline constexpr const char* kPooler = "bert.pooler.";
inline constexpr const char* kPretrainingHeads = "cls.";
inline constexpr const char* kAnswerHead = "qa_outputs.";
inline constexpr const char* kClassifier = "classifier.";

// Of every head but `own`.
std::vector<std::string> heads_other_than(const std::vector<std::string>& own);

// The first values of a run that fine-tunes a model.
struct FirstValues {
  Path model;                      // as find_model_folder() takes it
  std::vector<std::string> heads;  // of the task: drawn with `seed` where the model lacks them
  std::vector<std::string> replaced = {};  // of these those that are drawn in any case
  uint64_t seed = 0;
};
// Fills the table and returns where the values come from, in words. Errors: those of
// training::load_values().
std::string fill_from_model(params::Table& table, const FirstValues& first);

// The values of a fine-tuned model, which has all `heads` of its task. Error: a tensor is missing.
void load_fine_tuned(params::Table& table, const Path& model,
                     const std::vector<std::string>& heads);

}  // namespace onebit::tasks
