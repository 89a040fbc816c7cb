// What the ranks have computed for the items of a sweep, brought together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/comm/communicator.h"
#include "onebit/data/length_sweep.h"

namespace onebit::tasks {

// Gives every rank the values of all items. values_of(item) is where an item's values are on this
// rank, of the same size on every rank; those of the rank's own items are read, the others written.
// Collective.
void gather_items(const data::LengthSweep& sweep, comm::Communicator& communicator,
                  const std::function<std::span<float>(uint32_t item)>& values_of);

}  // namespace onebit::tasks
