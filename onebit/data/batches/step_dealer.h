// Distributes the samples of a step to ranks and micro-steps by length, so that each gets about the
// same number of tokens. A step has the same samples with any number of ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onebit::batches {

// Divides the samples of a step into micro-batches, one for each rank and micro-step.

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

// The parts for options with these members. step_samples 0: micro_batch in every part.
template <typename Options>
StepParts parts_of(const Options& options) {
  const int64_t parts = options.accumulation * options.world_size;
  return {.samples = options.step_samples > 0 ? options.step_samples : options.micro_batch * parts,
          .world_size = options.world_size,
          .accumulation = options.accumulation};
}

struct DealOptions {
  uint64_t seed = 0;
  int world_size = 1;
  int rank = 0;
  int64_t micro_batch = 1;  // maximum per micro-step
  int64_t accumulation = 1;
  int64_t step_samples = 0;  // over all ranks. 0: micro_batch in every micro-step of every rank
};

struct DealtSample {
  uint32_t item;
  uint64_t sample;  // global sample number
};

// Every item once per epoch, in a new order each time. Thread-safe.
class StepDealer {
 public:
  // `lengths` are in tokens. Errors name `source` ("train.tsv: 3 windows"). Errors: fewer items
  // than ranks, an option out of range.
  StepDealer(std::vector<int32_t> lengths, const DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return lengths_.size(); }
  uint64_t samples_per_step() const { return static_cast<uint64_t>(parts_.samples); }
  // Returns this rank's samples in micro-step `micro_step` of the step that begins at global sample
  // `first_sample`, possibly none. A pure function of its arguments. Epochs follow each other
  // without a gap: the last step of one may contain the first samples of the next.
  std::vector<DealtSample> deal(uint64_t first_sample, int64_t micro_step) const;

 private:
  std::vector<int32_t> lengths_;
  DealOptions options_;
  StepParts parts_;
};

// Every item once, in batches of similar length, longest first, over all ranks: for prediction.
class LengthSweep {
 public:
  // `lengths` are in tokens, `batch` is a number of items. Error: an option out of range.
  LengthSweep(const std::vector<int32_t>& lengths, int64_t batch, int world_size, int rank);

  // The number of batches of this rank.
  int64_t batches() const;
  // The items of this rank's batch `index`.
  std::span<const uint32_t> items(int64_t index) const;
  // The items of `rank`, in the order of its batches.
  std::vector<uint32_t> items_of(int rank) const;

 private:
  int64_t batch_, world_size_, rank_;
  std::vector<uint32_t> order_;
};

}  // namespace onebit::batches
