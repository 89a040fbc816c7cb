// The examples of one store, epoch after epoch: the interface of every kind of store for streams of
// batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/pair_options.h"
#include "onebit/data/batches/pair_walk.h"
#include "onebit/data/batches/permutation.h"
#include "onebit/data/corpus/store.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/samples/sample_store.h"

namespace onebit::batches {

// What an epoch of a store reads and what its next-sentence labels are worth.
struct EpochFigures {
  uint64_t examples = 0;
  // With next_sentence: the examples whose text has room for a continuation, and those that got it
  // (label 0). The others have a random second text (label 1).
  uint64_t could_continue = 0, continue_text = 0;
  uint64_t parts = 0;       // sentences, and pieces of sentences that are longer than a sequence
  uint64_t tokens = 0;      // of the store
  uint64_t cut_tokens = 0;  // in sentences that are longer than a sequence
  // Tokens that some example contains, other than in a random second text. With next_sentence an
  // estimate: a random text is taken to be as long as the one that it replaces.
  uint64_t read_tokens = 0;

  void add(const EpochFigures& other) {
    examples += other.examples;
    could_continue += other.could_continue;
    continue_text += other.continue_text;
    parts += other.parts;
    tokens += other.tokens;
    cut_tokens += other.cut_tokens;
    read_tokens += other.read_tokens;
  }
  double read_share() const {
    return tokens == 0 ? 1 : static_cast<double>(read_tokens) / static_cast<double>(tokens);
  }
};

// Random access to the pairs of an epoch: a table with one entry every few hundred sentences, built
// in one pass over the sentence offsets (tokens are not read). The pass also finds what the epoch
// leaves out, and whether its next-sentence labels can be learned.
class EpochIndex {
 public:
  // Counts the pairs of the epoch on `threads` threads.
  EpochIndex(const corpus::TokenStore& store, const PairWalkOptions& options, int threads);

  uint64_t examples() const { return figures_.examples; }
  const EpochFigures& figures() const { return figures_; }
  const PairWalkOptions& options() const { return options_; }
  // Returns a walk that stands before the example at place `index` in the epoch's order; sets
  // `number` to its place in the text. The index must outlive the walk.
  PairWalk find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const;
  uint64_t size_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t first_number;  // place in the text of the pair that begins here
    TextPlace place;        // where a visit begins
    uint64_t document;
  };

  void count(const corpus::TokenStore& store, uint64_t document_begin, uint64_t document_end,
             std::vector<Entry>& entries, EpochFigures& figures) const;

  PairWalkOptions options_;
  std::vector<Entry> entries_;
  EpochFigures figures_;
  std::optional<Permutation> order_;
};

// The position in the data: epoch and index of an example.
struct DataPosition {
  uint64_t epoch = 0;
  uint64_t index = 0;

  bool operator==(const DataPosition&) const = default;
};

// The position of the current epoch in a source. With it a resumed run does not have to cut earlier
// epochs again just to count their examples.
struct EpochMark {
  uint64_t first_examples = 0;  // number of examples in epoch 0
  uint64_t epoch = 0;           // the current one
  uint64_t begin = 0;           // counter value of its first example

  bool operator==(const EpochMark&) const = default;
};

// Example `index` of epoch `epoch` is a pure function of (store, seed, epoch, index). Thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Restores a mark from a source of the same store, seed and options. Error: contradictory
  // numbers.
  virtual void restore(const EpochMark& mark) = 0;
  // Returns the mark from which to continue at example `counter`.
  virtual EpochMark mark(uint64_t counter) = 0;
  virtual uint64_t first_epoch_examples() = 0;
  // Facts of the epoch of the `counter`-th example, from the epoch's own cut.
  virtual EpochFigures figures(uint64_t counter) = 0;
  // The position of the `counter`-th example since the start of epoch 0.
  virtual DataPosition locate(uint64_t counter) = 0;
  // Appends the example at `position` as the sample with global number `sample`. `masked` is the
  // share of tokens to mask where the source itself masks.
  virtual void append(DataPosition position, uint64_t sample, double masked, Batch& batch) = 0;
  // The maximum sizes of an example.
  virtual BatchBounds bounds() const = 0;
  // The number of epochs cut so far. Each costs a pass over the store.
  virtual int64_t indexes_built() const = 0;
};

// The bounds of `count` examples, each within one of the given bounds.
BatchBounds bounds_of(int64_t count, const std::vector<BatchBounds>& examples);

struct SourceOptions {
  PairOptions pairs;
  MaskOptions masks;
  uint64_t seed = 0;
  int threads = 1;  // for building the index of the first epoch
};

// Opens the store in `folder`, of either kind. Errors: as for TokenStore and SampleStore.
std::shared_ptr<const corpus::Store> open_store(const Path& folder);

// Returns the source for the kind of `store`. Errors: an option out of range; samples longer than
// the sequence length, without a label where the next sentence is to be predicted, or to be packed.
std::unique_ptr<ExampleSource> open_source(const std::shared_ptr<const corpus::Store>& store,
                                           const SourceOptions& options);

// The samples of a store with given pairs and masks: each once per epoch, in a new order.
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
  void append(DataPosition position, uint64_t sample, double masked, Batch& batch) override;
  BatchBounds bounds() const override;
  int64_t indexes_built() const override { return 0; }

 private:
  std::shared_ptr<const samples::SampleStore> store_;
  bool next_sentence_;
  uint64_t seed_;
};

}  // namespace onebit::batches
