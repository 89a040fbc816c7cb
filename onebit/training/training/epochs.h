// The length of a run that a recipe gives in epochs.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/exchange/engine/config.h"

namespace onebit::training {

// Sets config.run.steps so that `epochs` passes over `samples` are consumed, in at least one step.
// Returns the decision in words. Error: the batch sizes of the recipe do not fit the ranks.
std::string choose_steps(engine::EngineConfig& config, double epochs, uint64_t samples,
                         int world_size);

}  // namespace onebit::training
