// The samples of a store with given pairs and masks: each once per epoch, in a new order.
#pragma once

#include <cstdint>
#include <memory>

#include "onebit/data/batches/example_source.h"
#include "onebit/data/samples/sample_store.h"

namespace onebit::batches {

class SampleSource : public ExampleSource {
 public:
  // The sequence length in `pairs` is the maximum for a sample. Without next_sentence labels are
  // dropped. Errors: longer samples, or missing labels with next_sentence.
  SampleSource(std::shared_ptr<const samples::SampleStore> store, const PairOptions& pairs,
               uint64_t seed);

  void restore(const EpochMark& mark) override;
  EpochMark mark(uint64_t counter) override;
  uint64_t first_epoch_examples() override { return store_->samples(); }
  EpochFigures figures(uint64_t counter) override;
  DataPosition locate(uint64_t counter) override;
  // Error: a damaged store.
  void append(DataPosition position, uint64_t sample, Batch& batch) override;
  BatchBounds bounds() const override;
  int64_t indexes_built() const override { return 0; }

 private:
  std::shared_ptr<const samples::SampleStore> store_;
  bool next_sentence_;
  uint64_t seed_;
};

}  // namespace onebit::batches
