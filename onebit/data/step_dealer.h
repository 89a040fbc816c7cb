// The samples of a step, dealt to ranks and micro-steps by length, so that each gets about the same
// number of tokens. A step holds the same samples at any number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/step_parts.h"

namespace onebit::data {

struct DealOptions {
  uint64_t seed = 0;
  int world_size = 1;
  int rank = 0;
  int64_t micro_batch = 1;  // the most of one micro-step
  int64_t accumulation = 1;
  int64_t step_samples = 0;  // of all ranks; 0: micro_batch in every micro-step of every rank
};

struct DealtSample {
  uint32_t item;
  uint64_t sample;  // global sample number
};

// Every item once an epoch, in another order each. Usable from any number of threads.
class StepDealer {
 public:
  // `lengths` are the items' tokens; `source` ("train.tsv: 3 windows") names them in errors.
  // Errors: fewer items than ranks, an option out of range.
  StepDealer(std::vector<int32_t> lengths, const DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return lengths_.size(); }
  uint64_t samples_per_step() const { return static_cast<uint64_t>(parts_.samples); }
  // This rank's samples in micro-step `micro_step` of the step that begins at global sample
  // `first_sample`, possibly none; a pure function of its arguments. Epochs follow each other
  // without a gap: the last step of one may hold the first samples of the next.
  std::vector<DealtSample> deal(uint64_t first_sample, int64_t micro_step) const;

 private:
  std::vector<int32_t> lengths_;
  DealOptions options_;
  StepParts parts_;
};

}  // namespace onebit::data
