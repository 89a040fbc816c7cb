// The agreement of ranks before a step with local gradients.
#pragma once

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/optimizer.h"

namespace onebit::deepspeed {

// Whether all gradients of all ranks are finite, and the mean of their squared norms, in `report`.
// Collective.
bool all_are_finite(Context&, const ParameterTable&, comm::Communicator&, const optim::StepInput&,
                    optim::StepReport& report);

}  // namespace onebit::deepspeed
