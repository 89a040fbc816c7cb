// Distributes the samples of a step to ranks and micro-steps by length, so that each gets about the
// same number of tokens. A step has the same samples with any number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/batches/step_parts.h"

namespace onebit::batches {

struct DealOptions {
  uint64_t seed = 0;
  int world_size = 1;
  int rank = 0;
  int64_t micro_batch = 1;  // maximum per micro-step
  int64_t accumulation = 1;
  int64_t step_samples = 0;  // over all ranks; 0: micro_batch in every micro-step of every rank
};

struct DealtSample {
  uint32_t item;
  uint64_t sample;  // global sample number
};

// Every item once per epoch, in a new order each time. Thread-safe.
class StepDealer {
 public:
  // `lengths` are in tokens; errors name `source` ("train.tsv: 3 windows"). Errors: fewer items
  // than ranks, an option out of range.
  StepDealer(std::vector<int32_t> lengths, const DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return lengths_.size(); }
  uint64_t samples_per_step() const { return static_cast<uint64_t>(parts_.samples); }
  // Returns this rank's samples in micro-step `micro_step` of the step that begins at global sample
  // `first_sample`, possibly none; a pure function of its arguments. Epochs follow each other
  // without a gap: the last step of one may contain the first samples of the next.
  std::vector<DealtSample> deal(uint64_t first_sample, int64_t micro_step) const;

 private:
  std::vector<int32_t> lengths_;
  DealOptions options_;
  StepParts parts_;
};

}  // namespace onebit::batches
