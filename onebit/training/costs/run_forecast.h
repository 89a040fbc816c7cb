// Predicts the duration of a run from its remaining steps and the time of one step of each kind
// (step_costs.h).
#pragma once

#include <cstdint>

#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/optim/schedule.h"
#include "onebit/training/costs/step_costs.h"

namespace onebit::costs {

// The seconds of all `updates`. One that averages gradients and then sends one bit per element
// takes a dense step and the excess of a compressed step over one without an exchange.
double seconds_of(const optim::UpdateCounts& updates, const StepForecast& step);

struct RunForecast {
  optim::UpdateCounts updates;
  double seconds = 0;  // of the steps only, without evaluations and checkpoints
};

// Covers the steps after `from` up to `to`. On one rank every step is dense. An "auto" freeze is
// assumed to happen as early as possible.
RunForecast forecast_run(const optim::OptimizerRecipe& optimizer, const optim::RunFacts& run,
                         const StepForecast& step, int world_size, int64_t from, int64_t to);

}  // namespace onebit::costs
