// The memory that 1-bit Adam reserves, computed without reserving any, for plans of worlds that are
// not there (OptimizerRecipe::state_bytes).
#pragma once

#include <cstdint>

#include "onebit/optim/optimizer_recipe.h"
#include "onebit/params/table.h"

namespace onebit::optim {

// OneBitAdam::state_bytes() of rank 0 on one level. `table` need not be allocated.
int64_t onebit_adam_state_bytes(const params::Table& table, int world_size, const RunFacts& run);

}  // namespace onebit::optim
