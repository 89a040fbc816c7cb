// The sentence pairs of one store for one sequence length, generated on the fly: example `index` of
// epoch `epoch` is a pure function of (seed, epoch, index), located without building the earlier
// ones. Every epoch cuts the documents anew and visits each of its examples once, in a new order.
// pair_walk.h decides the ranges of the two texts and whether the second is random;
// example_builder.h draws a random one and adds [CLS] and [SEP]; masking.h masks.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>

#include "onebit/data/batches/epoch_index.h"
#include "onebit/data/batches/example_source.h"
#include "onebit/data/batches/masking.h"
#include "onebit/data/corpus/token_store.h"

namespace onebit::batches {

class PairSource : public ExampleSource {
 public:
  // The first epoch's index is built by `threads` threads, later ones ahead of need by one thread.
  PairSource(std::shared_ptr<const corpus::TokenStore> store, const PairOptions& pairs,
             const MaskOptions& masks, uint64_t seed, int threads);
  ~PairSource() override;
  PairSource(const PairSource&) = delete;
  PairSource& operator=(const PairSource&) = delete;

  const corpus::TokenStore& store() const { return *store_; }
  void restore(const EpochMark& mark) override;
  EpochMark mark(uint64_t counter) override;
  // The number of examples in the first epoch; later epochs differ slightly.
  uint64_t first_epoch_examples() override;
  DataPosition locate(uint64_t counter) override;
  EpochFigures figures(uint64_t counter) override;
  void append(DataPosition position, uint64_t sample, Batch& batch) override;
  BatchBounds bounds() const override;
  int64_t indexes_built() const override { return indexes_built_; }

 private:
  std::shared_ptr<const EpochIndex> index(uint64_t epoch);
  std::shared_ptr<const EpochIndex> build(uint64_t epoch, int threads);
  uint64_t end_of(uint64_t begin, uint64_t epoch);
  void build_ahead(uint64_t epoch);

  std::shared_ptr<const corpus::TokenStore> store_;
  PairOptions pairs_;
  Masker masker_;
  uint64_t seed_;
  int threads_;
  std::atomic<int64_t> indexes_built_ = 0;

  std::mutex mutex_;  // guards all members below
  std::map<uint64_t, std::shared_ptr<const EpochIndex>> indexes_;
  std::map<uint64_t, uint64_t> epoch_at_;  // counter value of an epoch's first example -> the epoch
  uint64_t ahead_epoch_ = 0;
  std::future<std::shared_ptr<const EpochIndex>> ahead_;
};

}  // namespace onebit::batches
