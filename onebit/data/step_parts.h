// How the samples of a step are cut into micro-batches, one for each rank and micro-step.
#pragma once

#include <algorithm>
#include <cstdint>

namespace onebit::data {

// The parts of a step: its micro-batches, those of the first micro-step first. They are as equal as
// can be: where their number does not divide the samples, the first ones have one more, so ranks
// differ by a sample at most, and a rank makes a micro-step without a sample only after one with.
struct StepParts {
  int64_t samples = 1;  // of the step, over all ranks
  int world_size = 1;
  int64_t accumulation = 1;  // micro-steps

  int64_t count() const { return accumulation * world_size; }
  int64_t rest() const { return samples % count(); }
  int64_t begin(int64_t part) const { return part * (samples / count()) + std::min(part, rest()); }
  int64_t size(int64_t part) const { return begin(part + 1) - begin(part); }
  int64_t largest() const { return size(0); }
  // What all ranks have in a micro-step.
  int64_t size_of_micro_step(int64_t micro_step) const {
    return begin((micro_step + 1) * world_size) - begin(micro_step * world_size);
  }

  int64_t part_of(int rank, int64_t micro_step) const { return micro_step * world_size + rank; }
};

// Of options with these members; step_samples 0: micro_batch in every part.
template <typename Options>
StepParts parts_of(const Options& options) {
  const int64_t parts = options.accumulation * options.world_size;
  return {.samples = options.step_samples > 0 ? options.step_samples : options.micro_batch * parts,
          .world_size = options.world_size,
          .accumulation = options.accumulation};
}

}  // namespace onebit::data
