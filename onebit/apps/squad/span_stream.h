// Batches of SQuAD windows, packed without padding. A step's samples do not depend on the number of
// ranks; within a step they are dealt by length, so that ranks and micro-steps get equal work.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/apps/squad/features.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/length_sweep.h"
#include "onebit/data/batches/step_dealer.h"

namespace onebit::squad {

struct SpanBatch : batches::PackedRows {
  // [2, B] first and last token of the answer, counted from the sequence's first row; 0 ([CLS]) if
  // there is none.
  std::vector<int32_t> spans;
  std::vector<uint32_t> windows;  // [B] indices into features().windows()

  void clear();
  void reserve(const batches::BatchBounds& bounds);
};

// Training: every window once per epoch, in a new order each. Usable from any number of threads.
class SpanStream {
 public:
  // `features` must outlive it. Errors: no window, more ranks than windows, an option out of range.
  SpanStream(const Features& features, const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it.
  void build(uint64_t first_sample, int64_t micro_step, SpanBatch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const Features& features_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

// Prediction: every window once, grouped by length, the longest first.
class SpanSweep {
 public:
  // `features` must outlive it. `batch` counts sequences.
  SpanSweep(const Features& features, int64_t batch, int world_size, int rank);

  // The number of this rank's batches.
  int64_t batches() const { return sweep_.batches(); }
  void build(int64_t index, SpanBatch& batch) const;
  // The items of the sweep are indices of windows.
  const batches::LengthSweep& sweep() const { return sweep_; }
  batches::BatchBounds bounds() const;

 private:
  const Features& features_;
  int64_t batch_;
  batches::LengthSweep sweep_;
};

}  // namespace onebit::squad
