// Batches of examples, packed without padding; every text is a sequence of its own.
#pragma once

#include <cstdint>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/training/finetune/encoded_examples.h"

namespace onebit::embed {

// Training: every example once per epoch, in a new order each. Usable from any number of threads.
class ExampleStream {
 public:
  // Both must outlive it; `encoded` are the texts of `examples`. Error: fewer examples than ranks.
  ExampleStream(const finetune::EncodedExamples& encoded, const Examples& examples,
                const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. The texts of an example are consecutive
  // sequences. The sequence_values of scored pairs are their scores [examples].
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const finetune::EncodedExamples& encoded_;
  const Examples& examples_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
  int64_t longest_;  // the most tokens of an example
};

}  // namespace onebit::embed
