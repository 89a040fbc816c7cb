// Error feedback at another number of ranks. What the ranks owe together is kept: the average of
// the worker residuals, and the server residual of every element.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/comm/bucket.h"

namespace onebit::compress {

// Adds one old rank's worker residual to `merged` f32 [elements] (zeroed by the caller), divided by
// the old number of ranks. When all have been added, in rank order, `merged` is the residual of
// EVERY new rank: the average over ranks, which is what reaches the parameters, is unchanged.
void merge_worker_residual(std::span<const float> residual, int old_world_size,
                           std::span<float> merged);

// Puts the server residual of `rank` (f32 [owned elements]) at its places in `full` f32 [elements].
void spread_server_residual(const comm::Buckets& buckets, int world_size, int rank,
                            std::span<const float> owned, std::span<float> full);

// Takes the part of `rank` out of `full`, under the new cut.
void take_server_residual(const comm::Buckets& buckets, int world_size, int rank,
                          std::span<const float> full, std::span<float> owned);

}  // namespace onebit::compress
