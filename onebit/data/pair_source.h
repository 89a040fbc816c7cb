// The sentence pairs of one store for one sequence length, made on the fly: example `index` of
// epoch `epoch` is a pure function of (seed, epoch, index), found without building the ones before
// it. Every epoch cuts the documents anew, visits each of its examples once and in another order.
// pair_walk.h decides where the two texts of a pair lie and whether the second is a random one;
// example_builder.h draws that and writes [CLS] and [SEP]; masking.h masks.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>

#include "onebit/corpus/token_store.h"
#include "onebit/data/epoch_index.h"
#include "onebit/data/example_source.h"
#include "onebit/data/masking.h"

namespace onebit::data {

class PairSource : public ExampleSource {
 public:
  // `threads` build the first epoch's index; later ones are built ahead of need by one thread.
  PairSource(std::shared_ptr<const corpus::TokenStore> store, const PairOptions& pairs,
             const MaskOptions& masks, uint64_t seed, int threads);
  ~PairSource() override;
  PairSource(const PairSource&) = delete;
  PairSource& operator=(const PairSource&) = delete;

  const corpus::TokenStore& store() const { return *store_; }
  void restore(const EpochMark& mark) override;
  EpochMark mark(uint64_t counter) override;
  // Examples in the first epoch; later ones have a few more or less.
  uint64_t first_epoch_examples() override;
  DataPosition locate(uint64_t counter) override;
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

  std::mutex mutex_;  // guards what follows
  std::map<uint64_t, std::shared_ptr<const EpochIndex>> indexes_;
  std::map<uint64_t, uint64_t> epoch_at_;  // counter of an epoch's first example -> the epoch
  uint64_t ahead_epoch_ = 0;
  std::future<std::shared_ptr<const EpochIndex>> ahead_;
};

}  // namespace onebit::data
