// Whether all ranks have the same values, which every update keeps so.
#pragma once

#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::engine {

// Compares a hash of the values. Collective. The result is equal on all ranks.
bool replicas_agree(const ParameterTable& table, comm::Communicator& communicator);
// Gives every rank the values of rank 0. Ranks that have them already send a hash only. Collective.
void broadcast_values(ParameterTable& table, comm::Communicator& communicator);

}  // namespace onebit::engine
