// Batches for every rank in a global order of samples that does not depend on the number of ranks:
// sample s is the same sequence with the same mask on any rank, and a step always consumes the same
// samples. Two ranks get the samples of one rank with twice the accumulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/example_source.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/data/corpus/store.h"

namespace onebit::batches {

// Assigns samples to several sources by weight, evenly and without state: the number of samples
// from a source among the first s is a closed formula, so any sample is located directly.
class Mixture {
 public:
  Mixture() = default;
  // Weights must be above 0. Their sum is arbitrary.
  explicit Mixture(const std::vector<double>& weights);

  struct Place {
    size_t source;
    uint64_t counter;  // number of earlier samples from this source

    bool operator==(const Place&) const = default;
  };
  Place place(uint64_t sample) const;
  // The number of samples from `source` among the first `samples`. It deviates from the exact share
  // by less than the number of sources (and by the rounding of shares to 32 bits).
  uint64_t count(size_t source, uint64_t samples) const;

 private:
  // The share of source i among sources i, i + 1, ..., in units of 1 / 2^32.
  std::vector<uint64_t> share_;
};

struct BatchStreamOptions {
  uint64_t seed = 0;
  int world_size = 1;
  int rank = 0;
  int64_t micro_batch = 1;   // maximum sequences of one rank in one micro-step
  int64_t accumulation = 1;  // micro-steps in a step
  int64_t step_samples = 0;  // over all ranks. 0: micro_batch in every micro-step of every rank
  PairOptions pairs;
  MaskOptions masks;
  int threads = 1;  // for building the index of the first epoch
};

struct WeightedStore {
  std::shared_ptr<const corpus::Store> store;
  double weight = 0;  // share of the samples. 0 in all stores: by number of examples
};

// Thread-safe.
class BatchStream {
 public:
  // Errors: no store, stores of different vocabularies or casings, weights for only some stores,
  // more ranks than samples, an option out of range, and the errors of open_source(). `marks` come
  // from a stream with the same stores, seed and pair options at the sample to continue from. With
  // them no earlier epoch is cut again. Without marks all earlier epochs are cut again, and the
  // batches are the same.
  BatchStream(const std::vector<WeightedStore>& stores, const BatchStreamOptions& options,
              const std::vector<EpochMark>& marks = {});

  uint64_t samples_per_step() const { return static_cast<uint64_t>(parts_.samples); }
  // Builds this rank's batch in micro-step `micro_step` of the step that begins at global sample
  // `first_sample`: the samples of its part (StepParts), counted from first_sample. There may be
  // none. A pure function of its arguments. To resume, continue at the sample counter.
  void build(uint64_t first_sample, int64_t micro_step, Batch& batch);
  // The maximum sizes of any batch.
  BatchBounds bounds() const;

  // The number of examples in the first epoch over all stores.
  uint64_t first_epoch_examples();
  // For each store the facts of the epoch that it began with: the first one, or its mark's.
  std::vector<EpochFigures> figures();
  // For each store the epoch and index of its next example after `samples` samples.
  std::vector<DataPosition> positions(uint64_t samples);
  // A mark for each store, to continue from after `samples` samples.
  std::vector<EpochMark> marks(uint64_t samples);
  // ExampleSource::indexes_built(), summed over all stores.
  int64_t indexes_built() const;
  const BatchStreamOptions& options() const { return options_; }

 private:
  BatchStreamOptions options_;
  std::vector<std::unique_ptr<ExampleSource>> sources_;
  std::vector<uint64_t> epoch_begins_;  // by source, of the epoch that it began with
  Mixture mixture_;
  StepParts parts_;
};

// A held-out store in a fixed order with fixed pairs and masks, so that evaluations are comparable.
struct EvaluationOptions {
  uint64_t seed = 0;  // for pairs and masks, not the run's seed, so that runs are comparable
  int world_size = 1;
  int rank = 0;
  int64_t batch = 32;       // sequences. The last one may be short
  int64_t max_samples = 0;  // 0: all
  PairOptions pairs;
  MaskOptions masks;
  int threads = 1;
};

// Thread-safe.
class EvaluationStream {
 public:
  // Errors: an option out of range, and the errors of open_source().
  EvaluationStream(const std::shared_ptr<const corpus::Store>& store,
                   const EvaluationOptions& options);

  // The number of samples over all ranks.
  uint64_t samples() const { return samples_; }
  // The number of batches of this rank. Ranks may differ by one, and it may be 0.
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
