// The heads of all tasks in checkpoints (model/head_names.h). A task reads the encoder and its own
// heads only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/math/model/config.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

// The prefixes of all heads except `own`.
std::vector<std::string> heads_other_than(const std::vector<std::string>& own);

// The heads of a task with outputs for tokens: `own`, and in families whose tasks share a dense
// layer before their labels (ModernBERT) that layer.
std::vector<std::string> heads_of_tokens(const model::EncoderConfig& config, const char* own);

// The initial values of a run that fine-tunes a model.
struct InitialValues {
  Path model;                      // resolved by find_model_folder()
  std::vector<std::string> heads;  // of the task: drawn with `seed` where the model lacks them
  std::vector<std::string> replaced = {};  // the ones that are drawn in any case
  uint64_t seed = 0;
};
// Fills the table and returns a description of the values' origin. Errors: as for
// training::load_values().
std::string fill_from_model(ParameterTable& table, const InitialValues& first);

// Loads a fine-tuned model, with all `heads` of its task, into a table that was declared only. It
// computes in `compute`, as training::load_for_inference() says. The values must not change while
// the result lives, and the context must outlive it. Error: a tensor is missing.
[[nodiscard]] ConstantWeights load_fine_tuned(Context& context, ParameterTable& table,
                                              std::optional<DType> compute, const Path& model,
                                              const std::vector<std::string>& heads,
                                              training::FileUse file_use);

}  // namespace onebit::finetune
