// Batches of labelled texts, packed without padding.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/apps/classify/labels.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/training/finetune/encoded_examples.h"

namespace onebit::classify {

// Training: every example once per epoch, in a new order each. Usable from any number of threads.
class ExampleStream {
 public:
  // Examples and targets must outlive it. Error: fewer examples than ranks; `source` names the
  // file.
  ExampleStream(const finetune::EncodedExamples& examples, const Targets& targets,
                const batches::DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Single labels are its sequence_labels
  // [B], the numbers of other problems its sequence_values [B, outputs].
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const finetune::EncodedExamples& examples_;
  const Targets& targets_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

}  // namespace onebit::classify
