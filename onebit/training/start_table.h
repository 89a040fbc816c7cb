// The table that is printed once before the first step of a run.
#pragma once

#include "onebit/training/session.h"
#include "onebit/training/step_costs.h"

namespace onebit::training {

struct StartTable {
  Rows rows;
  StepForecast expected;
};

// Model, parameters, memory, first values, data, ranks, optimizer and rate, what was chosen
// automatically, and the expected time of a step with and without compression, from short
// measurements of link and compute (step_costs.h), which affect nothing else. Collective.
StartTable start_table(Context& context, Session& run, comm::Communicator& communicator);

}  // namespace onebit::training
