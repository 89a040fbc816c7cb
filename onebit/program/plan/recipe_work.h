// The operations of a recipe's pass, and the time that they take on a measured machine.
#pragma once

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/training/costs/machine_costs.h"
#include "onebit/training/costs/observed_pass.h"
#include "onebit/training/costs/step_prediction.h"

namespace onebit::plan {

// The work for one full sequence of the recipe.
struct RecipeWork {
  costs::PassParts one_layer;  // of the model with a single layer
  // The work that each further layer adds, averaged over the steps of the run if passes leave
  // layers out. The last layer has fewer rows: only those that heads read.
  costs::ByKind layer_forward, layer_backward;
};

// Counts the operations of the model with one layer and with two by running them
// (kernels/device_switch.h). Every layer after the first does the same work. `type` is the type of
// the matrix products, for which rates will be given. Runs a sequence twice; nothing is timed.
RecipeWork count_work(Context& context, const pretrain::PretrainingConfig& config, DType type);

// The times of one pass over `sequences` on a rank that has one of `host_parts` equal parts of the
// machine. `table` describes the whole model and need not be allocated. A layer's gradients are
// ready when its backward pass has ended; those of the heads are ready first, those of the
// embeddings last.
costs::PassTimes pass_times(const RecipeWork& work, const costs::ComputingCosts& machine,
                            const ParameterTable& table, int64_t sequences, int host_parts);

}  // namespace onebit::plan
