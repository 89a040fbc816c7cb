// Batches of labelled texts, packed without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/classify/labels.h"
#include "onebit/data/batch.h"
#include "onebit/data/step_dealer.h"
#include "onebit/records/encoded_examples.h"

namespace onebit::classify {

struct ExampleBatch : data::PackedRows {
  std::vector<int32_t> classes;  // [B]; only of single labels
  std::vector<float> values;     // [B, outputs]; only of other problems

  void clear();
  void reserve(const data::BatchBounds& bounds);
};

// Training: every example once per epoch, in a new order each. Usable from any number of threads.
class ExampleStream {
 public:
  // Examples and targets must outlive it. Error: fewer examples than ranks; `source` names the
  // file.
  ExampleStream(const records::EncodedExamples& examples, const Targets& targets,
                const data::DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as data::StepDealer::deal() deals it.
  void build(uint64_t first_sample, int64_t micro_step, ExampleBatch& batch) const;
  data::BatchBounds bounds() const;

 private:
  const records::EncodedExamples& examples_;
  const Targets& targets_;
  data::StepDealer dealer_;
  int64_t micro_batch_;
};

}  // namespace onebit::classify
