// What the table at the start says of the optimizer, its rate and its 1-bit phase.
#pragma once

#include "onebit/engine/config.h"
#include "onebit/optim/schedule.h"
#include "onebit/training/rows.h"
#include "onebit/training/step_costs.h"

namespace onebit::training {

Rows optimizer_rows(const engine::EngineConfig& config, const optim::Schedule& schedule,
                    int world_size);

// Whether the recipe lets this run come to compress.
bool reaches_compressed_phase(const engine::EngineConfig& config, const optim::Schedule& schedule);

// How many buckets a step sends in either phase, and what a message of one holds.
std::string describe_buckets(const ExchangeBuckets& buckets, const engine::EngineConfig& config,
                             int world_size);

}  // namespace onebit::training
