// How long a run will take, from the steps it has to make and what one of each kind takes
// (step_costs.h).
#pragma once

#include <cstdint>

#include "onebit/engine/config.h"
#include "onebit/optim/schedule.h"
#include "onebit/training/step_costs.h"

namespace onebit::training {

// Seconds of all of them. An update that averages gradients and then sends one bit an element takes
// a dense step and what the exchange adds to a step without one.
double seconds_of(const optim::UpdateCounts& updates, const StepForecast& step);

struct RunForecast {
  optim::UpdateCounts updates;
  double seconds = 0;  // of the steps alone: no evaluations, no checkpoints
};

// Of the steps after `from` up to `to`. On one rank every step is a dense one; an "auto" freeze is
// taken to come as early as it can.
RunForecast forecast_run(const optim::OptimizerRecipe& optimizer, const optim::RunFacts& run,
                         const StepForecast& step, int world_size, int64_t from, int64_t to);

}  // namespace onebit::training
