// The micro-batch whose computation stands for that of all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/comm/communicator.h"

namespace onebit::training {

// Of micro-steps, each with the rows (tokens) of its micro-batch on every of `world_size` ranks
// ([micro-step][rank]), the one that is most like all: its largest micro-batch has the rows that
// the slowest rank of a step has in the mean, and its ranks together have the rows of the mean.
// `accumulation` consecutive micro-steps make a step, for which ranks wait once; the last step may
// be cut short. Returns an index of a micro-step.
int64_t typical_micro_step(std::span<const int64_t> rows, int world_size, int64_t accumulation);

// The same among the first micro-steps to come, 32 or fewer; `rows_of` returns this rank's rows of
// micro-step `index`, counted from 0 across steps. Collective: all ranks get the same index.
int64_t typical_micro_step(const std::function<int64_t(int64_t index)>& rows_of,
                           int64_t accumulation, comm::Communicator& communicator);

}  // namespace onebit::training
