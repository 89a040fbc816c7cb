#include "onebit/data/batches/evaluation_stream.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::batches {

EvaluationStream::EvaluationStream(const std::shared_ptr<const corpus::Store>& store,
                                   const EvaluationOptions& options)
    : options_(options),
      source_(open_source(store, {.pairs = options.pairs,
                                  .masks = options.masks,
                                  .seed = options.seed,
                                  .threads = options.threads})) {
  require(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size,
          "rank {} of {} ranks does not exist", options.rank, options.world_size);
  require(options.batch >= 1, "the evaluation batch is {}: it must be at least 1", options.batch);
  require(options.max_samples >= 0, "max_samples is {}: it must be 0 (all) or more",
          options.max_samples);
  samples_ = source_->first_epoch_examples();
  if (options.max_samples > 0) {
    samples_ = std::min(samples_, static_cast<uint64_t>(options.max_samples));
  }
}

int64_t EvaluationStream::batches() const {
  const auto size = static_cast<uint64_t>(options_.batch);
  const auto all = static_cast<int64_t>((samples_ + size - 1) / size);
  return (all - options_.rank + options_.world_size - 1) / options_.world_size;
}

void EvaluationStream::build(int64_t index, Batch& batch) {
  ONEBIT_INVARIANT(index >= 0 && index < batches());
  batch.clear();
  const int64_t number = index * options_.world_size + options_.rank;
  const auto begin = static_cast<uint64_t>(number * options_.batch);
  const uint64_t end = std::min(samples_, begin + static_cast<uint64_t>(options_.batch));
  for (uint64_t sample = begin; sample < end; ++sample) {
    source_->append({0, sample}, sample, batch);
  }
}

BatchBounds EvaluationStream::bounds() const {
  return bounds_of(options_.batch, {source_->bounds()});
}

}  // namespace onebit::batches
