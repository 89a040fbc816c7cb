// The table that is printed once before the first step of a run.
#pragma once

#include "onebit/training/costs/run_forecast.h"
#include "onebit/training/costs/step_costs.h"
#include "onebit/training/training/session.h"

namespace onebit::training {

struct StartTable {
  Rows rows;
  costs::StepForecast expected;
  costs::RunForecast run;       // of the remaining steps
  int64_t completed_steps = 0;  // before them
  int world_size = 1;
  int64_t memory_bytes = 0;  // of a rank, as planned
};

// Model, parameters, memory, initial values, data, ranks, optimizer and rate, automatic decisions,
// and the expected time of a step with and without compression and of the whole run, from short
// measurements of link and compute (step_costs.h), which affect nothing else. Collective.
StartTable start_table(Context& context, Session& run, comm::Communicator& communicator);

}  // namespace onebit::training
