// What ranks agree on before a step from gradients of their own.
#pragma once

#include "onebit/comm/communicator.h"
#include "onebit/optim/optimizer.h"

namespace onebit::deepspeed {

// Whether all gradients of all ranks are finite, and the mean of their squared norms, in `report`.
// Collective.
bool all_are_finite(Context&, const params::Table&, comm::Communicator&, const optim::StepInput&,
                    optim::StepReport& report);

}  // namespace onebit::deepspeed
