// What the ranks have computed for the items of a sweep, brought together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/comm/communicator.h"
#include "onebit/data/length_sweep.h"
#include "onebit/tensor/tensor.h"

namespace onebit::tasks {

// Where an item's values are on this rank, of the same size on every rank.
using ValuesOf = std::function<std::span<float>(uint32_t item)>;

// Gives every rank the values of all items; those of the rank's own items are read, the others
// written. Collective.
void gather_items(const data::LengthSweep& sweep, comm::Communicator& communicator,
                  const ValuesOf& values_of);

// Computes the values of all items, each on one rank, and gives them to all. predict(index) is what
// the model says of batch `index` of this rank: f32 on the CPU, one item's values after the
// other's. Collective.
void predict_items(const data::LengthSweep& sweep, comm::Communicator& communicator,
                   const ValuesOf& values_of, const std::function<Tensor(int64_t index)>& predict);

}  // namespace onebit::tasks
