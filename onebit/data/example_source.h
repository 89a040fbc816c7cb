// The examples of one store, epoch after epoch: what a stream of batches asks of every kind of
// store.
#pragma once

#include <cstdint>
#include <memory>

#include "onebit/corpus/store.h"
#include "onebit/data/batch.h"
#include "onebit/data/pair_options.h"

namespace onebit::data {

// Epoch and index of an example: the position in the data.
struct DataPosition {
  uint64_t epoch = 0;
  uint64_t index = 0;

  bool operator==(const DataPosition&) const = default;
};

// The position of the current epoch in a source: with it, a resumed run need not cut earlier epochs
// again only to count their examples.
struct EpochMark {
  uint64_t first_examples = 0;  // in epoch 0
  uint64_t epoch = 0;           // the current one
  uint64_t begin = 0;           // counter of its first example

  bool operator==(const EpochMark&) const = default;
};

// Example `index` of epoch `epoch` is a pure function of (store, seed, epoch, index). Usable from
// any number of threads.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // A mark of a source of the same store, seed and options. Error: it contradicts itself.
  virtual void restore(const EpochMark& mark) = 0;
  // The mark with which to continue at example `counter`.
  virtual EpochMark mark(uint64_t counter) = 0;
  virtual uint64_t first_epoch_examples() = 0;
  // The position of the `counter`-th example since the start of epoch 0.
  virtual DataPosition locate(uint64_t counter) = 0;
  // Appends the masked example at `position` as sequence of global number `sample`.
  virtual void append(DataPosition position, uint64_t sample, Batch& batch) = 0;
  // The largest sizes of an example.
  virtual BatchBounds bounds() const = 0;
  // The number of epochs cut so far: each costs a pass over the store.
  virtual int64_t indexes_built() const = 0;
};

// The bounds of `sequences` examples of any of these bounds.
BatchBounds bounds_of(int64_t sequences, const std::vector<BatchBounds>& examples);

struct SourceOptions {
  PairOptions pairs;
  MaskOptions masks;
  uint64_t seed = 0;
  int threads = 1;  // for building the index of the first epoch
};

// Opens the store in `folder`, of either kind. Errors: those of TokenStore and SampleStore.
std::shared_ptr<const corpus::Store> open_store(const Path& folder);

// The source for the kind of `store`. Errors: an option out of range; samples that are longer than
// the sequence length, or have no label where the next sentence is to be told.
std::unique_ptr<ExampleSource> open_source(const std::shared_ptr<const corpus::Store>& store,
                                           const SourceOptions& options);

}  // namespace onebit::data
