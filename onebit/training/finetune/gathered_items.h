// Gathers the values that the ranks have computed for the items of a sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/data/batches/length_sweep.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::finetune {

// Returns the place of an item's values on this rank; the size is the same on every rank.
using ValuesOf = std::function<std::span<float>(uint32_t item)>;

// Gives every rank the values of all items: reads those of the rank's own items and writes the
// others. Collective.
void gather_items(const batches::LengthSweep& sweep, comm::Communicator& communicator,
                  const ValuesOf& values_of);

// Computes the values of all items, each on one rank, and gives them to all. predict(index) returns
// the model's output for batch `index` of this rank: f32 on the CPU, the items' values one after
// the other. Collective.
void predict_items(const batches::LengthSweep& sweep, comm::Communicator& communicator,
                   const ValuesOf& values_of, const std::function<Tensor(int64_t index)>& predict);

}  // namespace onebit::finetune
