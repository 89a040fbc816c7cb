// The batch triple of DeepSpeed's configuration.
#pragma once

#include <cstdint>
#include <string>

namespace onebit::engine {

// train = micro * accumulation * world_size. In samples (sequences).
struct BatchSizes {
  int64_t train = 0;
  int64_t micro = 0;
  int64_t accumulation = 0;
};

// The number of ranks that three sizes belong to; 1 where they do not name one.
int ranks_of(const BatchSizes& given);

// Any two of train_batch_size, train_micro_batch_size_per_gpu and gradient_accumulation_steps (0:
// absent) give the third; with one, accumulation is 1. Errors: none given, a remainder, three that
// disagree; each with the values and the fix. `place` names the recipe.
BatchSizes solve_batch_sizes(BatchSizes given, int world_size, const std::string& place);

}  // namespace onebit::engine
