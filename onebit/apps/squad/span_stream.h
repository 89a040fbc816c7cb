// Batches of SQuAD windows, packed without padding. A step's samples do not depend on the number of
// ranks; within a step they are dealt by length, so that ranks and micro-steps get equal work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/apps/squad/features.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"

namespace onebit::squad {

// Training: every window once per epoch, in a new order each. Usable from any number of threads.
class SpanStream {
 public:
  // `features` must outlive it. Errors: no window, more ranks than windows, an option out of range.
  SpanStream(const Features& features, const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Its sequence_labels [2, B] are the first
  // and the last token of the answer, counted from the sequence's first row, and 0 ([CLS]) if there
  // is none.
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const Features& features_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

// The tokens of each window.
std::vector<int32_t> lengths_of(const Features& features);

// The bounds of any `windows` windows.
batches::BatchBounds bounds_of(const Features& features, int64_t windows);

// Prediction: fills `batch` with the windows `which`, without labels.
void build_batch(const Features& features, std::span<const uint32_t> which, batches::Batch& batch);

}  // namespace onebit::squad
