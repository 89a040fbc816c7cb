// The part of `onebit inspect` about a pre-training recipe and a model's sizes.
#pragma once

#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::pretrain {

// Sizes of the encoder, and the number of parameters with these heads of pre-training.
Json model_sizes(const model::EncoderConfig& config, model::PreTrainingHeads heads);

training::RecipeFacts inspect_pretraining_recipe(const Recipe& recipe);

}  // namespace onebit::pretrain
