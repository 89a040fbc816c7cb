// Selects the micro-batch whose computation represents that of all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::training {

// Returns the index of the micro-step that is most similar to all. `rows` contains the rows
// (tokens) of each micro-batch, [micro-steps, world_size]. The largest micro-batch of the result
// has about the mean rows of a step's slowest rank, and its ranks together have about the mean rows
// of all. `accumulation` consecutive micro-steps form a step, for which ranks wait once; the last
// step may be cut short.
int64_t typical_micro_step(std::span<const int64_t> rows, int world_size, int64_t accumulation);

// The same among the first micro-steps to come, at most 32; `rows_of` returns this rank's rows of
// micro-step `index`, counted from 0 across steps. Collective: all ranks get the same index.
int64_t typical_micro_step(const std::function<int64_t(int64_t index)>& rows_of,
                           int64_t accumulation, comm::Communicator& communicator);

}  // namespace onebit::training
