// The ways of exchanging gradients that a plan compares.
#pragma once

#include <vector>

#include "onebit/exchange/engine/config.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// Averages in f32 and in 16 bits, 1-bit Adam, 0/1 Adam. The recipe's own way is used as it is, the
// others are derived from the recipe: a derived 1-bit Adam freezes after a tenth of the run; a
// derived 0/1 Adam has DeepSpeed's intervals and stops averaging after a tenth. Their averages have
// the recipe's wire type.
std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run);

}  // namespace onebit::plan
