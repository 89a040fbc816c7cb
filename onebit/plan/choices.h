// The ways of exchanging gradients that a plan compares.
#pragma once

#include <vector>

#include "onebit/engine/config.h"
#include "onebit/plan/run_plan.h"

namespace onebit::plan {

// Averages in f32 and in 16 bits, 1-bit Adam, 0/1 Adam: the recipe's own among them as it is, the
// others as they would be made of it. A 1-bit Adam that the recipe does not describe freezes after
// a tenth of the run; a 0/1 Adam has DeepSpeed's intervals and stops averaging after a tenth. What
// they average travels as in the recipe.
std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run);

}  // namespace onebit::plan
