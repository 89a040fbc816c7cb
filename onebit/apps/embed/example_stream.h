// Batches of examples, packed without padding; every text is a sequence of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/training/finetune/encoded_examples.h"

namespace onebit::embed {

// The texts of an example are consecutive sequences.
struct EmbedBatch : batches::PackedRows {
  int64_t parts = 2;          // sequences per example
  std::vector<float> scores;  // [examples]; empty except for scored pairs

  int64_t examples() const { return sequences() / parts; }
  void clear();
  void reserve(const batches::BatchBounds& bounds);
};

// Training: every example once per epoch, in a new order each. Usable from any number of threads.
class ExampleStream {
 public:
  // Both must outlive it; `encoded` are the texts of `examples`. Error: fewer examples than ranks.
  ExampleStream(const finetune::EncodedExamples& encoded, const Examples& examples,
                const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it.
  void build(uint64_t first_sample, int64_t micro_step, EmbedBatch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const finetune::EncodedExamples& encoded_;
  const Examples& examples_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
  int64_t longest_;  // the most tokens of an example
};

}  // namespace onebit::embed
