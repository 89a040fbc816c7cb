// The three batch sizes of DeepSpeed's configuration.
#pragma once

#include <cstdint>
#include <string>

namespace onebit::engine {

// train = micro * accumulation * world_size, in samples (sequences).
struct BatchSizes {
  int64_t train = 0;
  int64_t micro = 0;
  int64_t accumulation = 0;
  // run.uneven_batches: `train` may be less than the product. It is then cut into micro-batches
  // that differ by at most one sample (batches/step_dealer.h), and `micro` is the largest of them.
  bool uneven = false;

  bool are_equal(int world_size) const { return train == micro * accumulation * world_size; }
};

// The number of ranks to which three sizes belong, the smallest possible for unequal micro-batches,
// or 1 if they do not determine it.
int ranks_of(const BatchSizes& requested);

// Any two of train_batch_size, train_micro_batch_size_per_gpu and gradient_accumulation_steps (0:
// absent) give the third. With one, accumulation is 1. If they may be uneven, train_batch_size is
// kept, a requested micro-batch is the maximum of a rank, and accumulation is as small as possible.
// Errors: none requested, a remainder, three that disagree, a rank without a sample, each with the
// values and the fix. `place` names the recipe.
BatchSizes solve_batch_sizes(BatchSizes requested, int world_size, const std::string& place);

// How solved sizes are distributed: "8 per rank x 2 micro-steps x 3 ranks", or if these are unequal
// "11 + 11 + 10 over 3 ranks, in 2 micro-steps of at most 6 per rank".
std::string describe_shares(const BatchSizes& solved, int world_size);

}  // namespace onebit::engine
