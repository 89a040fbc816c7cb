// Evaluates a model on disk on a held-out token store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/pretrain/pretraining_held_out.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"

namespace onebit::pretrain {

struct PretrainingEvaluationOptions {
  Path model;  // resolved by find_model_folder()
  Path data;   // token store
  // Change the recipe of the run if the model is in one of its checkpoints, else a recipe whose
  // sequences the model can take and whose heads it has. All samples are evaluated, unless
  // data.evaluation_samples is changed.
  std::vector<std::string> overrides = {};
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
};

// Uses the pairs and masks of the run's own evaluation unless others are given. Errors: a store of
// another vocabulary or casing, a model without a masked-word head, or without the next-sentence
// head that is requested.
HeldOutResult evaluate_model(Context& context, const PretrainingEvaluationOptions& task,
                             comm::Communicator& communicator);

}  // namespace onebit::pretrain
