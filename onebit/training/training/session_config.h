// The recipe's settings of a training session that the engine does not read: when to save, to
// evaluate and to compare ranks, and where events are written.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/exchange/engine/config.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit::training {

struct TensorBoardConfig {
  bool enabled = true;
  std::string folder;  // empty: <output>/tensorboard
};

struct SessionConfig {
  // Intervals in optimizer steps. 0: never before the end.
  int64_t checkpoint_every = 0;
  int64_t evaluate_every = 0;
  int64_t check_replicas_every = 0;

  int64_t keep_last = 3;          // checkpoints
  int64_t checkpoint_copies = 1;  // disks that hold a shard, where hosts have their own
  TensorBoardConfig tensorboard;
};

// Lists the keys, in the sections `run` and `tensorboard`, after the engine has listed its own.
SessionConfig read_session_config(Keys& recipe);

// The length of a run that a recipe gives in epochs.

// Sets config.run.steps so that `epochs` passes over `samples` are consumed, in at least one step.
// Returns the decision in words. Error: the batch sizes of the recipe do not fit the ranks.
std::string choose_steps(engine::EngineConfig& config, double epochs, uint64_t samples,
                         int world_size);

}  // namespace onebit::training
