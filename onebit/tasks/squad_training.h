// Fine-tuning on SQuAD, from any BERT to an ordinary question-answering folder.
#pragma once

#include <optional>

#include "onebit/comm/communicator.h"
#include "onebit/data/squad_score.h"
#include "onebit/device/context.h"
#include "onebit/training/run_options.h"

namespace onebit::tasks {

struct SquadTrainingOptions : training::RunOptions {
  Path model;  // as find_model_folder() takes it
  Path train;
  std::optional<Path> dev;  // evaluated at the end of each epoch
};

struct SquadSummary {
  int64_t steps = 0, samples = 0;
  std::optional<data::SquadScore::Part> best;  // with dev: the model that was kept
  int64_t best_step = 0;
};

// Trains, and leaves in `output`: the best model by F1 (the last one without dev) as a Hugging Face
// folder, its predictions.json, nbest_predictions.json and (version 2.0) null_odds.json on dev;
// metrics.jsonl, TensorBoard events, checkpoints, recipe.json. Every rank calls it with the same
// options. Errors, among others: no question of the file can be used; `output` holds a run and
// resume was not asked for.
SquadSummary run_squad_training(Context& context, const SquadTrainingOptions& options,
                                comm::Communicator& communicator);

}  // namespace onebit::tasks
