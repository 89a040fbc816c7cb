#include "onebit/data/batches/example_source.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "onebit/data/batches/example_builder.h"
#include "onebit/data/batches/masking.h"
#include "onebit/data/batches/permutation.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::batches {

SampleSource::SampleSource(std::shared_ptr<const samples::SampleStore> store,
                           const PairOptions& pairs, uint64_t seed)
    : store_(std::move(store)), next_sentence_(pairs.next_sentence), seed_(seed) {
  check(pairs);
  const samples::SampleManifest& manifest = store_->manifest();
  require(manifest.longest_tokens <= static_cast<uint64_t>(pairs.sequence_length),
          "{}: has samples of up to {} tokens, but the sequence length is {}, and samples are not "
          "truncated: set data.sequence_length (evaluate: --sequence-length) to {}, with a model "
          "of as many positions, or prepare files with shorter samples",
          store_->folder().string(), manifest.longest_tokens, pairs.sequence_length,
          manifest.longest_tokens);
  require(!next_sentence_ || manifest.labels > 0,
          "{}: its samples have no next-sentence label: set data.next_sentence to false (evaluate: "
          "--no-next-sentence)",
          store_->folder().string());
}

void SampleSource::restore(const EpochMark& mark) {
  const uint64_t size = store_->samples();
  require(mark.first_examples == size && mark.begin / size == mark.epoch && mark.begin % size == 0,
          "invalid data position: epoch {} at example {}; every epoch has {} examples", mark.epoch,
          mark.begin, size);
}

DataPosition SampleSource::locate(uint64_t counter) {
  return {counter / store_->samples(), counter % store_->samples()};
}

EpochMark SampleSource::mark(uint64_t counter) {
  const DataPosition position = locate(counter);
  return {store_->samples(), position.epoch, counter - position.index};
}

// Every epoch is the same, and a sample is read whole.
EpochFigures SampleSource::figures(uint64_t) {
  const samples::SampleManifest& manifest = store_->manifest();
  const uint64_t labels = next_sentence_ ? manifest.labels : 0;
  const uint64_t continue_text = labels - std::min(labels, manifest.random_next);
  return {.examples = store_->samples(),
          .could_continue = continue_text,
          .continue_text = continue_text,
          .parts = store_->samples(),
          .tokens = store_->tokens(),
          .read_tokens = store_->tokens()};
}

BatchBounds SampleSource::bounds() const {
  const auto longest = static_cast<int64_t>(store_->manifest().longest_tokens);
  return {.sequences = 1,
          .rows = longest,
          .longest = longest,
          .labelled_rows = static_cast<int64_t>(store_->manifest().most_masked)};
}

void SampleSource::append(DataPosition position, uint64_t sample, double /*masked*/, Batch& batch) {
  // One per thread: building a batch allocates nothing once it has grown.
  thread_local samples::Sample read;
  const Permutation order(store_->samples(),
                          derived_seed(seed_, RandomStream::kEpoch, position.epoch));
  store_->read(order(position.index), read);
  const int64_t first_row = batch.rows();
  batch.tokens.insert(batch.tokens.end(), read.tokens.begin(), read.tokens.end());
  batch.segments.resize(batch.segments.size() + static_cast<size_t>(read.first_part), 0);
  batch.segments.resize(batch.tokens.size(), 1);
  for (size_t i = 0; i < read.masked_ids.size(); ++i) {
    batch.labelled_rows.push_back(static_cast<int32_t>(first_row) + read.masked_positions[i]);
    batch.row_labels.push_back(read.masked_ids[i]);
  }
  batch.sequence_labels.push_back(next_sentence_ ? read.next_sentence : samples::kNoLabel);
  batch.end_sequence(first_row, sample);
}

namespace {

// To find a pair, a walk begins at the entry before it, and visits at most about so many sentences
// and pairs.
constexpr uint64_t kEntrySentences = 256, kEntryPairs = 256;

// The tokens of the walk's text that the example made from `pair` contains.
uint64_t read_tokens(PairWalk& walk, const corpus::TokenStore& store, const Pair& pair,
                     const PairOptions& options) {
  const uint64_t begin = walk.pieces().token(pair.a_begin);
  TokenRange a{begin, walk.pieces().token(pair.a_end)};
  TokenRange b{a.end, walk.pieces().token(pair.b_end)};
  if (options.next_sentence && b.size() == 0) {
    const auto mean = static_cast<int64_t>(store.tokens() / store.sentences());
    const int64_t random = std::max(std::min(mean, options.most_text_tokens()),
                                    std::max<int64_t>(pair.target - a.size(), 1));
    b.end += static_cast<uint64_t>(random);
  }
  const Dropped dropped = dropped_tokens(options.most_text_tokens(), a, b);
  const int64_t kept = a.size() - dropped.from_a;
  return static_cast<uint64_t>(pair.random_next ? kept : kept + b.size() - dropped.from_b);
}

}  // namespace

EpochIndex::EpochIndex(const corpus::TokenStore& store, const PairWalkOptions& options, int threads)
    : options_(options) {
  // Divides the text at document boundaries into parts with about equal numbers of sentences.
  const auto parts = static_cast<uint64_t>(std::max(threads, 1));
  std::vector<uint64_t> bounds(parts + 1, store.documents());
  for (uint64_t part = 0; part < parts; ++part) {
    bounds[part] = part == 0 ? 0 : store.document_of(store.sentences() / parts * part);
    while (!begins_block(store, options_.pairs, bounds[part])) ++bounds[part];
  }
  std::vector<std::vector<Entry>> entries(parts);
  std::vector<EpochFigures> figures(parts);
  parallel_for(threads, static_cast<int64_t>(parts), 1, [&](int64_t begin, int64_t end) {
    for (auto part = static_cast<size_t>(begin); part < static_cast<size_t>(end); ++part) {
      count(store, bounds[part], bounds[part + 1], entries[part], figures[part]);
    }
  });
  for (size_t part = 0; part < parts; ++part) {
    for (Entry& entry : entries[part]) entry.first_number += figures_.examples;
    entries_.insert(entries_.end(), entries[part].begin(), entries[part].end());
    figures_.add(figures[part]);
  }
  order_.emplace(figures_.examples, options_.epoch_seed);
}

void EpochIndex::count(const corpus::TokenStore& store, uint64_t document_begin,
                       uint64_t document_end, std::vector<Entry>& entries,
                       EpochFigures& figures) const {
  if (document_begin == document_end) return;
  const uint64_t first = store.document_begin(document_begin),
                 last = store.document_begin(document_end);
  PairWalk walk(store, options_, document_begin, {first});
  for (uint64_t sentence = first; sentence < last; ++sentence) {
    figures.parts += walk.pieces().count(sentence);
    if (!walk.pieces().is_cut(sentence)) continue;
    figures.cut_tokens += store.sentence_begin(sentence + 1) - store.sentence_begin(sentence);
  }
  figures.tokens = store.sentence_begin(last) - store.sentence_begin(first);
  uint64_t next_sentence = 0, next_pair = 0;
  while (!walk.done(document_end)) {
    if (walk.at_visit() && walk.at_sample() &&
        (walk.place().sentence >= next_sentence || figures.examples >= next_pair)) {
      entries.push_back({figures.examples, walk.place(), walk.document()});
      next_sentence = walk.place().sentence + kEntrySentences;
      next_pair = figures.examples + kEntryPairs;
    }
    figures.examples += walk.at_sample() ? 1 : 0;
    const Pair pair = walk.next();
    figures.could_continue += options_.pairs.next_sentence && pair.could_continue ? 1 : 0;
    figures.continue_text += options_.pairs.next_sentence && !pair.random_next ? 1 : 0;
    figures.read_tokens += read_tokens(walk, store, pair, options_.pairs);
  }
}

PairWalk EpochIndex::find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const {
  const uint64_t wanted = (*order_)(index);
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), wanted,
      [](uint64_t value, const Entry& entry) { return value < entry.first_number; });
  ONEBIT_INVARIANT(after != entries_.begin());
  const Entry& entry = *std::prev(after);
  PairWalk walk(store, options_, entry.document, entry.place);
  for (uint64_t skipped = entry.first_number; skipped < wanted;) {
    walk.next();
    skipped += walk.at_sample() ? 1 : 0;
  }
  *number = wanted;
  return walk;
}

namespace {

// The sentence pairs of one store for one sequence length, generated on the fly: example `index` of
// epoch `epoch` is a pure function of (seed, epoch, index), located without building the earlier
// ones. Every epoch cuts the documents anew and visits each of its examples once, in a new order.
// pair_walk.h decides the ranges of the two texts and whether the second is random.
// example_builder.h draws a random one and adds [CLS] and [SEP]. masking.h masks.
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
  // The number of examples in the first epoch. Later epochs differ slightly.
  uint64_t first_epoch_examples() override;
  DataPosition locate(uint64_t counter) override;
  EpochFigures figures(uint64_t counter) override;
  void append(DataPosition position, uint64_t sample, double masked, Batch& batch) override;
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

PairSource::PairSource(std::shared_ptr<const corpus::TokenStore> store, const PairOptions& pairs,
                       const MaskOptions& masks, uint64_t seed, int threads)
    : store_(std::move(store)),
      pairs_(pairs),
      masker_(*store_->vocabulary(), masks),
      seed_(seed),
      threads_(threads),
      epoch_at_{{0, 0}} {
  check(pairs);
  pairs_.form = store_->vocabulary()->pair_template();
}

PairSource::~PairSource() {
  if (ahead_.valid()) ahead_.wait();
}

std::shared_ptr<const EpochIndex> PairSource::build(uint64_t epoch, int threads) {
  ++indexes_built_;
  const PairWalkOptions options{.pairs = pairs_,
                                .epoch_seed = derived_seed(seed_, RandomStream::kEpoch, epoch)};
  return std::make_shared<const EpochIndex>(*store_, options, threads);
}

// Requires mutex_ to be held.
std::shared_ptr<const EpochIndex> PairSource::index(uint64_t epoch) {
  const auto known = indexes_.find(epoch);
  if (known != indexes_.end()) return known->second;
  std::shared_ptr<const EpochIndex> made;
  if (ahead_.valid() && ahead_epoch_ == epoch) {
    made = ahead_.get();
  } else {
    made = build(epoch, threads_);
  }
  // Keeps the current index and its neighbours: batches in preparation straddle the end of an
  // epoch.
  if (indexes_.size() >= 3) {
    const bool oldest = indexes_.begin()->first < epoch;
    indexes_.erase(oldest ? indexes_.begin() : std::prev(indexes_.end()));
  }
  indexes_.emplace(epoch, made);
  return made;
}

// Requires mutex_ to be held.
void PairSource::build_ahead(uint64_t epoch) {
  if (indexes_.contains(epoch) || (ahead_.valid() && ahead_epoch_ == epoch)) return;
  if (ahead_.valid()) ahead_.wait();
  ahead_epoch_ = epoch;
  ahead_ = std::async(std::launch::async, [this, epoch] { return build(epoch, 1); });
}

void PairSource::restore(const EpochMark& mark) {
  const auto [first, epoch, begin] = mark;
  const bool possible = epoch == 0 ? begin == 0 : epoch == 1 ? begin == first : begin > first;
  require(first > 0 && possible,
          "invalid data position: epoch {} at example {}; the first epoch has {} examples", epoch,
          begin, first);
  const std::lock_guard lock(mutex_);
  epoch_at_.emplace(first, 1);
  epoch_at_.emplace(begin, epoch);
}

// Returns the end of `epoch`, which begins at `begin`. Requires mutex_ to be held.
uint64_t PairSource::end_of(uint64_t begin, uint64_t epoch) {
  const auto known = epoch_at_.upper_bound(begin);
  if (known != epoch_at_.end() && known->second == epoch + 1) return known->first;
  const uint64_t end = begin + index(epoch)->examples();
  epoch_at_.emplace(end, epoch + 1);
  return end;
}

uint64_t PairSource::first_epoch_examples() {
  const std::lock_guard lock(mutex_);
  return end_of(0, 0);
}

EpochFigures PairSource::figures(uint64_t counter) {
  const uint64_t epoch = locate(counter).epoch;
  const std::lock_guard lock(mutex_);
  return index(epoch)->figures();
}

DataPosition PairSource::locate(uint64_t counter) {
  const std::lock_guard lock(mutex_);
  const auto before = std::prev(epoch_at_.upper_bound(counter));
  uint64_t begin = before->first, epoch = before->second;
  for (uint64_t end = end_of(begin, epoch); counter >= end; end = end_of(begin, epoch)) {
    begin = end;
    ++epoch;
  }
  return {epoch, counter - begin};
}

EpochMark PairSource::mark(uint64_t counter) {
  const DataPosition position = locate(counter);
  return {first_epoch_examples(), position.epoch, counter - position.index};
}

BatchBounds PairSource::bounds() const {
  return {.sequences = pairs_.most_sequences(),
          .rows = pairs_.sequence_length,
          .longest = pairs_.sequence_length,
          .labelled_rows = most_predictions(pairs_.sequence_length, masker_.options())};
}

void PairSource::append(DataPosition position, uint64_t sample, double masked, Batch& batch) {
  std::shared_ptr<const EpochIndex> epoch_index;
  {
    const std::lock_guard lock(mutex_);
    epoch_index = index(position.epoch);
    if (position.index >= epoch_index->examples() / 2) build_ahead(position.epoch + 1);
  }
  uint64_t number = 0;
  PairWalk walk = epoch_index->find(*store_, position.index, &number);
  RandomSequence random =
      random_sequence(epoch_index->options().epoch_seed, RandomStream::kExample, number);
  const int64_t first_row = batch.rows();
  do {
    append_pair(*store_, walk.next(), walk.options(), sample, first_row, random, batch);
  } while (!walk.at_sample());
  masker_.mask(random, masked, first_row, batch);
}

}  // namespace

BatchBounds bounds_of(int64_t count, const std::vector<BatchBounds>& examples) {
  BatchBounds bounds;
  for (const BatchBounds& example : examples) {
    bounds.include({.sequences = count * example.sequences,
                    .rows = count * example.rows,
                    .longest = example.longest,
                    .labelled_rows = count * example.labelled_rows});
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
  require(!options.pairs.packing,
          "{}: is a store of samples, which cannot be packed: set data.sequence_packing to false",
          written->folder().string());
  return std::make_unique<SampleSource>(std::move(written), options.pairs, options.seed);
}

}  // namespace onebit::batches
