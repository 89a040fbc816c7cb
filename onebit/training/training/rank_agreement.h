// Whether all ranks of a run were started alike. Under a plain mpirun each rank reads the recipe
// and the data of its own machine. Where these differ, the collectives would hang, or the run would
// train on something that nobody asked for.
#pragma once

#include <string_view>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::training {

// `mine`, an object with members, must be equal on all ranks. Collective. Error, on every rank: it
// is not. The error names the lowest rank that differs from rank 0, the first key that differs,
// both values, `what` differs ("the recipe") and the `remedy`.
void require_same_on_all(comm::Communicator& communicator, const Json& mine, std::string_view what,
                         std::string_view remedy);

}  // namespace onebit::training
