#include "onebit/data/batches/example_source.h"

#include <utility>

#include "onebit/data/batches/pair_source.h"
#include "onebit/data/batches/sample_source.h"
#include "onebit/ground/base/error.h"

namespace onebit::batches {

BatchBounds bounds_of(int64_t sequences, const std::vector<BatchBounds>& examples) {
  BatchBounds bounds;
  for (const BatchBounds& example : examples) {
    bounds.include({.sequences = sequences,
                    .rows = sequences * example.rows,
                    .longest = example.longest,
                    .labelled_rows = sequences * example.labelled_rows});
  }
  return bounds;
}

std::shared_ptr<const corpus::Store> open_store(const Path& folder) {
  if (samples::is_sample_store(folder)) return std::make_shared<samples::SampleStore>(folder);
  return std::make_shared<corpus::TokenStore>(folder);
}

std::unique_ptr<ExampleSource> open_source(const std::shared_ptr<const corpus::Store>& store,
                                           const SourceOptions& options) {
  if (auto tokens = std::dynamic_pointer_cast<const corpus::TokenStore>(store)) {
    return std::make_unique<PairSource>(std::move(tokens), options.pairs, options.masks,
                                        options.seed, options.threads);
  }
  auto written = std::dynamic_pointer_cast<const samples::SampleStore>(store);
  ONEBIT_INVARIANT(written != nullptr);
  return std::make_unique<SampleSource>(std::move(written), options.pairs, options.seed);
}

}  // namespace onebit::batches
