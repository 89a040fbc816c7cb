// Divides the samples of a step into micro-batches, one for each rank and micro-step.
#pragma once

#include <algorithm>
#include <cstdint>

namespace onebit::batches {

// The parts of a step are its micro-batches, in the order of micro-steps, then ranks. Their sizes
// differ by at most one, the larger ones first, so ranks differ by at most one sample, and a rank
// has an empty micro-step only after a non-empty one.
struct StepParts {
  int64_t samples = 1;  // of the step, over all ranks
  int world_size = 1;
  int64_t accumulation = 1;  // micro-steps

  int64_t count() const { return accumulation * world_size; }
  int64_t rest() const { return samples % count(); }
  int64_t begin(int64_t part) const { return part * (samples / count()) + std::min(part, rest()); }
  int64_t size(int64_t part) const { return begin(part + 1) - begin(part); }
  int64_t largest() const { return size(0); }
  // The number of samples of all ranks in a micro-step.
  int64_t size_of_micro_step(int64_t micro_step) const {
    return begin((micro_step + 1) * world_size) - begin(micro_step * world_size);
  }

  int64_t part_of(int rank, int64_t micro_step) const { return micro_step * world_size + rank; }
};

// The parts for options with these members; step_samples 0: micro_batch in every part.
template <typename Options>
StepParts parts_of(const Options& options) {
  const int64_t parts = options.accumulation * options.world_size;
  return {.samples = options.step_samples > 0 ? options.step_samples : options.micro_batch * parts,
          .world_size = options.world_size,
          .accumulation = options.accumulation};
}

}  // namespace onebit::batches
