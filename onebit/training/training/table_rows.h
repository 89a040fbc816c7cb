// The rows of the start and end tables of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/optim/schedule.h"
#include "onebit/training/costs/step_costs.h"

namespace onebit::training {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Prints to standard error.
void print_rows(const Rows& rows);

// The rows of the start table about the optimizer, its learning rate and its compressed phase.

// Where a run begins, which is not its first update if it was resumed.
struct RunProgress {
  int64_t completed_steps = 0;
  bool compressed = false;  // the compressed phase has begun
};

Rows optimizer_rows(const engine::EngineConfig& config, const optim::Schedule& schedule,
                    int world_size, const RunProgress& progress = {});

// Whether the run reaches the compressed phase according to its recipe.
bool reaches_compressed_phase(const engine::EngineConfig& config, const optim::Schedule& schedule);

// Describes how many buckets a step sends in either phase, and the size of their messages.
std::string describe_buckets(const costs::ExchangeBuckets& buckets,
                             const engine::EngineConfig& config, int world_size);

}  // namespace onebit::training
