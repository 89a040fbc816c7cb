// Batches of SQuAD windows, packed without padding. A step's samples do not depend on the number of
// ranks; within a step they are dealt by length, so that ranks and micro-steps get equal work.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/data/batch.h"
#include "onebit/squad/features.h"

namespace onebit::squad {

struct SpanBatch : data::PackedRows {
  // [2, B] first and last token of the answer, counted from the sequence's first row; 0 ([CLS])
  // when there is none.
  std::vector<int32_t> spans;
  std::vector<uint32_t> windows;  // [B] numbers in features().windows()

  void clear();
  void reserve(const data::BatchBounds& bounds);
};

struct SpanStreamOptions {
  uint64_t seed = 0;
  int world_size = 1;
  int rank = 0;
  int64_t micro_batch = 1;
  int64_t accumulation = 1;
};

// Training: every window once an epoch, in another order each. Usable from any number of threads.
class SpanStream {
 public:
  // `features` must outlive it. Errors: no window, more ranks than windows, an option out of range.
  SpanStream(const Features& features, const SpanStreamOptions& options);

  uint64_t samples_per_epoch() const { return features_.windows().size(); }
  uint64_t samples_per_step() const;
  // This rank's batch in micro-step `micro_step` of the step that begins at global sample
  // `first_sample`; a pure function of its arguments. Epochs follow each other without a gap: the
  // last step of one may hold the first samples of the next.
  void build(uint64_t first_sample, int64_t micro_step, SpanBatch& batch) const;
  data::BatchBounds bounds() const;

 private:
  const Features& features_;
  SpanStreamOptions options_;
};

// Prediction: every window once, of like length together, longest first.
class SpanSweep {
 public:
  // `features` must outlive it. `batch` counts sequences.
  SpanSweep(const Features& features, int64_t batch, int world_size, int rank);

  // Batches of this rank.
  int64_t batches() const;
  void build(int64_t index, SpanBatch& batch) const;
  // Numbers of the windows that `rank` predicts, in the order of its batches.
  std::vector<uint32_t> windows_of(int rank) const;
  data::BatchBounds bounds() const;

 private:
  const Features& features_;
  int64_t batch_, world_size_, rank_;
  std::vector<uint32_t> order_;
};

}  // namespace onebit::squad
