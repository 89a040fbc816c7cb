// Gathers the values that the ranks have computed for the items of a sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "onebit/data/batches/step_dealer.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::finetune {

// Returns the place of an item's values on this rank. The size is the same on every rank.
using ValuesOf = std::function<std::span<float>(uint32_t item)>;

// Gives every rank the values of all items: reads the values of the rank's own items and writes the
// others. Collective.
void gather_items(const batches::LengthSweep& sweep, comm::Communicator& communicator,
                  const ValuesOf& values_of);

struct PredictionBatch {
  int64_t items;
  int64_t tokens;  // of all items, but one item may have more
};

// Computes the values of all items, each on one rank, and gives them to all: in batches of at most
// `most`, whose items have similar lengths. predict(items) returns the model's output for one
// batch: f32 on the CPU, the items' values one after the other. Collective.
using Predict = std::function<Tensor(std::span<const uint32_t> items)>;
void predict_items(const std::vector<int32_t>& lengths, const PredictionBatch& most,
                   comm::Communicator& communicator, const ValuesOf& values_of,
                   const Predict& predict);

}  // namespace onebit::finetune
