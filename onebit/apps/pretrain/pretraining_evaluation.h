// Evaluates a model on disk on a held-out token store.
#pragma once

#include <optional>

#include "onebit/apps/pretrain/pretraining_held_out.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"

namespace onebit::pretrain {

struct PretrainingEvaluationOptions {
  Path model;  // resolved by find_model_folder()
  Path data;   // token store
  // Absent members are taken from the run if the model is in one of its checkpoints, else from the
  // defaults of a recipe.
  std::optional<int64_t> sequence_length, max_predictions;
  // Absent: as in the run, else whether the model has the head for it. False: masked words only.
  std::optional<bool> next_sentence;
  int64_t batch = 32;
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
  int64_t max_samples = 0;                     // 0: all
};

// Uses the pairs and masks of the run's own evaluation unless others are given. Errors: a store of
// another vocabulary or casing, a model without a masked-word head, or without the next-sentence
// head that is requested.
HeldOutResult evaluate_model(Context& context, const PretrainingEvaluationOptions& task,
                             comm::Communicator& communicator);

}  // namespace onebit::pretrain
