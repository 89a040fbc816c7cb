// A held-out store in a fixed order with fixed pairs and masks, so that evaluations are comparable.
#pragma once

#include <cstdint>
#include <memory>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/example_source.h"
#include "onebit/data/corpus/store.h"

namespace onebit::batches {

struct EvaluationOptions {
  uint64_t seed = 0;  // for pairs and masks; not the run's seed, so that runs are comparable
  int world_size = 1;
  int rank = 0;
  int64_t batch = 32;       // sequences; the last one may be short
  int64_t max_samples = 0;  // 0: all
  PairOptions pairs;
  MaskOptions masks;
  int threads = 1;
};

// Thread-safe.
class EvaluationStream {
 public:
  // Errors: an option out of range; those of open_source().
  EvaluationStream(const std::shared_ptr<const corpus::Store>& store,
                   const EvaluationOptions& options);

  // The number of samples over all ranks.
  uint64_t samples() const { return samples_; }
  // The number of batches of this rank; ranks may differ by one, and it may be 0.
  int64_t batches() const;
  // Builds batch `index` of this rank: batch (index * world_size + rank) of all.
  void build(int64_t index, Batch& batch);
  BatchBounds bounds() const;
  EpochFigures figures() const { return source_->figures(0); }

 private:
  EvaluationOptions options_;
  std::unique_ptr<ExampleSource> source_;
  uint64_t samples_;
};

}  // namespace onebit::batches
