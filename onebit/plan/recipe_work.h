// What a pass of a recipe does, and how long it takes on a machine that was measured.
#pragma once

#include "onebit/tasks/pretraining_config.h"
#include "onebit/training/machine_costs.h"
#include "onebit/training/observed_pass.h"
#include "onebit/training/step_prediction.h"

namespace onebit::plan {

// For one full sequence of the recipe.
struct RecipeWork {
  training::PassParts one_layer;  // of the model with a single layer
  // What each further layer adds, in the mean over the steps of the run where passes leave layers
  // out; the last layer has fewer rows than these, those that heads read.
  training::ByKind layer_forward, layer_backward;
};

// Counts the operations of the model with one layer and with two, by running them (profiles know
// what operations do, kernels/work.h): every layer after the first does the same. `type` is that of
// the products, for which rates will be given. Runs a sequence twice; nothing is timed.
RecipeWork count_work(Context& context, const tasks::PretrainingConfig& config, DType type);

// Of one pass over `sequences` by a rank that has one of `host_parts` equal parts of the machine.
// `table` is that of the whole model and need not be allocated. The gradients of a layer are ready
// when the layer's backward pass has ended, those of the heads before it, those of the embeddings
// last.
training::PassTimes pass_times(const RecipeWork& work, const training::ComputingCosts& machine,
                               const params::Table& table, int64_t sequences, int host_parts);

}  // namespace onebit::plan
