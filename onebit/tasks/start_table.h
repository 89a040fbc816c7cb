// What a run is about to do, told once before the first step.
#pragma once

#include "onebit/tasks/training_loop.h"

namespace onebit::tasks {

// Model, parameters, memory, ranks, data, what was chosen automatically, and the expected time of a
// step with and without compression, from a short measurement of link and compute. Collective.
Rows start_table(Context& context, TrainingRun& run, comm::Communicator& communicator);

}  // namespace onebit::tasks
