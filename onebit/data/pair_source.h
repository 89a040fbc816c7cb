// The sentence pairs of one store for one sequence length, made on the fly: example `index` of
// epoch `epoch` is a pure function of (seed, epoch, index), found without building the ones before
// it. Every epoch cuts the documents anew, visits each of its examples once and in another order.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "onebit/data/batch.h"
#include "onebit/data/epoch_index.h"
#include "onebit/data/masking.h"
#include "onebit/data/pair_options.h"
#include "onebit/data/token_store.h"

namespace onebit::data {

// Epoch and index of an example: the position in the data.
struct DataPosition {
  uint64_t epoch = 0;
  uint64_t index = 0;

  bool operator==(const DataPosition&) const = default;
};

// Usable from any number of threads.
class PairSource {
 public:
  // `threads` build the first epoch's index; later ones are built ahead of need by one thread.
  PairSource(std::shared_ptr<const TokenStore> store, const PairOptions& pairs,
             const MaskOptions& masks, uint64_t seed, int threads);
  ~PairSource();
  PairSource(const PairSource&) = delete;
  PairSource& operator=(const PairSource&) = delete;

  const TokenStore& store() const { return *store_; }
  // Examples in an epoch; differs a little between epochs.
  uint64_t examples(uint64_t epoch);
  // Where the `counter`-th example since the start of epoch 0 stands.
  DataPosition locate(uint64_t counter);
  // Appends the masked example at `position` as sequence of global number `sample`.
  void append(DataPosition position, uint64_t sample, Batch& batch);

 private:
  std::shared_ptr<const EpochIndex> index(uint64_t epoch);
  std::shared_ptr<const EpochIndex> build(uint64_t epoch, int threads) const;
  void build_ahead(uint64_t epoch);

  std::shared_ptr<const TokenStore> store_;
  PairOptions pairs_;
  Masker masker_;
  uint64_t seed_;
  int threads_;

  std::mutex mutex_;  // guards what follows
  std::map<uint64_t, std::shared_ptr<const EpochIndex>> indexes_;
  std::vector<uint64_t> epoch_begin_;  // [known epochs + 1] counter of their first example
  uint64_t ahead_epoch_ = 0;
  std::future<std::shared_ptr<const EpochIndex>> ahead_;
};

}  // namespace onebit::data
