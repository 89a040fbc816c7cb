// The source of a task's batches.
#pragma once

#include <cstdint>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::training {

// Determines which samples of a step this rank gets (batches/step_dealer.h). All members but `rank`
// are equal on all ranks.
struct StreamShare : batches::DealOptions {
  int threads = 1;  // for computations made once, at the start
};

// The batches of one rank, in an order of samples that all ranks share. Usable from any number of
// threads.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills `batch` with micro-step `micro_step` of the step that begins at global sample
  // `first_sample`; it may get no sample (batches/step_dealer.h). A pure function of its arguments:
  // the sample counter is the position.
  virtual void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) = 0;
  // The largest sizes of any batch.
  virtual batches::BatchBounds bounds() const = 0;
  // 0 if epochs have no common length (several token stores).
  virtual uint64_t samples_per_epoch() const { return 0; }
  // Members of a checkpoint's client state, and of the model card, from which Task::open() detects
  // changed data.
  virtual Json identity() const = 0;
  // Further members, from which it restores the position after `samples`.
  virtual Json position(uint64_t samples) = 0;
};

}  // namespace onebit::training
