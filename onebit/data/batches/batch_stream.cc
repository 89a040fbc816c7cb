#include "onebit/data/batches/batch_stream.h"

#include <algorithm>
#include <cmath>

#include "onebit/data/batches/permutation.h"
#include "onebit/ground/base/error.h"

namespace onebit::batches {

namespace {

constexpr double kOne = 4294967296.0;

// floor(value * share / 2^32) without overflow.
uint64_t part_of(uint64_t value, uint64_t share) {
  return (value >> 32) * share + (((value & 0xFFFFFFFFu) * share) >> 32);
}

}  // namespace

Mixture::Mixture(const std::vector<double>& weights) {
  require(!weights.empty(), "no data source was given");
  double rest = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight > 0, "the weight of a source is {}: it must be above 0",
            weight);
    rest += weight;
  }
  require(std::isfinite(rest),
          "the weights of the sources add up to more than a number can hold: give smaller ones");
  for (const double weight : weights) {
    share_.push_back(static_cast<uint64_t>(std::llround(std::min(weight / rest, 1.0) * kOne)));
    rest -= weight;
  }
  share_.back() = static_cast<uint64_t>(kOne);
}

uint64_t Mixture::count(size_t source, uint64_t samples) const {
  uint64_t rest = samples;
  for (size_t i = 0; i < source; ++i) rest -= part_of(rest, share_[i]);
  return part_of(rest, share_[source]);
}

Mixture::Place Mixture::place(uint64_t sample) const {
  uint64_t rest = sample;
  for (size_t source = 0;; ++source) {
    const uint64_t before = part_of(rest, share_[source]);
    if (part_of(rest + 1, share_[source]) > before) return {source, before};
    rest -= before;
  }
}

namespace {

void check_options(const BatchStreamOptions& options) {
  require(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size,
          "rank {} of {} ranks does not exist", options.rank, options.world_size);
  require(options.micro_batch >= 1, "micro_batch is {}: it must be at least 1",
          options.micro_batch);
  require(options.accumulation >= 1, "accumulation is {}: it must be at least 1",
          options.accumulation);
}

void check_same_vocabulary(const corpus::Store& first, const corpus::Store& other) {
  require(first.vocabulary()->checksum() == other.vocabulary()->checksum() &&
              first.casing() == other.casing(),
          "{} and {} were tokenized with different vocabularies or casings: prepare both with the "
          "same --vocab",
          first.folder().string(), other.folder().string());
}

// The given weights, or the numbers of examples if no weight is given.
std::vector<double> weights_of(const std::vector<WeightedStore>& stores,
                               const std::vector<std::unique_ptr<ExampleSource>>& sources) {
  const auto given = std::count_if(stores.begin(), stores.end(),
                                   [](const WeightedStore& store) { return store.weight != 0; });
  require(given == 0 || given == static_cast<ptrdiff_t>(stores.size()),
          "{} of {} stores have a weight: set a weight for all stores or for none", given,
          stores.size());
  std::vector<double> weights;
  for (size_t i = 0; i < stores.size(); ++i) {
    weights.push_back(given > 0 ? stores[i].weight
                                : static_cast<double>(sources[i]->first_epoch_examples()));
  }
  return weights;
}

}  // namespace

BatchStream::BatchStream(const std::vector<WeightedStore>& stores,
                         const BatchStreamOptions& options, const std::vector<EpochMark>& marks)
    : options_(options) {
  check_options(options);
  parts_ = parts_of(options);
  ONEBIT_INVARIANT(parts_.largest() <= options.micro_batch);
  require(!stores.empty(), "no store was given");
  ONEBIT_INVARIANT(marks.empty() || marks.size() == stores.size());
  for (size_t i = 0; i < stores.size(); ++i) {
    check_same_vocabulary(*stores[0].store, *stores[i].store);
    sources_.push_back(
        open_source(stores[i].store, {.pairs = options.pairs,
                                      .masks = options.masks,
                                      .seed = derived_seed(options.seed, RandomStream::kSource, i),
                                      .threads = options.threads}));
    if (!marks.empty()) sources_.back()->restore(marks[i]);
    epoch_begins_.push_back(marks.empty() ? 0 : marks[i].begin);
  }
  mixture_ = Mixture(weights_of(stores, sources_));
  const uint64_t samples = first_epoch_examples();
  require(samples >= static_cast<uint64_t>(options.world_size),
          "{} has {} samples of {} tokens for {} ranks: use fewer ranks or more text",
          stores[0].store->folder().string(), samples, options.pairs.sequence_length,
          options.world_size);
}

void BatchStream::build(uint64_t first_sample, int64_t micro_step, Batch& batch) {
  ONEBIT_INVARIANT(micro_step >= 0 && micro_step < options_.accumulation);
  batch.clear();
  const int64_t part = parts_.part_of(options_.rank, micro_step);
  const uint64_t begin = first_sample + static_cast<uint64_t>(parts_.begin(part));
  const auto update = static_cast<int64_t>(first_sample / samples_per_step());
  const double masked = options_.masks.probability_at(update);
  for (uint64_t k = 0; k < static_cast<uint64_t>(parts_.size(part)); ++k) {
    const Mixture::Place place = mixture_.place(begin + k);
    ExampleSource& source = *sources_[place.source];
    source.append(source.locate(place.counter), begin + k, masked, batch);
  }
}

BatchBounds BatchStream::bounds() const {
  std::vector<BatchBounds> examples;
  for (const auto& source : sources_) examples.push_back(source->bounds());
  return bounds_of(options_.micro_batch, examples);
}

uint64_t BatchStream::first_epoch_examples() {
  uint64_t sum = 0;
  for (const auto& source : sources_) sum += source->first_epoch_examples();
  return sum;
}

std::vector<EpochFigures> BatchStream::figures() {
  std::vector<EpochFigures> found;
  for (size_t i = 0; i < sources_.size(); ++i) {
    found.push_back(sources_[i]->figures(epoch_begins_[i]));
  }
  return found;
}

std::vector<EpochMark> BatchStream::marks(uint64_t samples) {
  std::vector<EpochMark> found;
  for (size_t i = 0; i < sources_.size(); ++i) {
    found.push_back(sources_[i]->mark(mixture_.count(i, samples)));
  }
  return found;
}

int64_t BatchStream::indexes_built() const {
  int64_t sum = 0;
  for (const auto& source : sources_) sum += source->indexes_built();
  return sum;
}

std::vector<DataPosition> BatchStream::positions(uint64_t samples) {
  std::vector<DataPosition> found;
  for (size_t i = 0; i < sources_.size(); ++i) {
    found.push_back(sources_[i]->locate(mixture_.count(i, samples)));
  }
  return found;
}

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
    source_->append({0, sample}, sample, options_.masks.probability, batch);
  }
}

BatchBounds EvaluationStream::bounds() const {
  return bounds_of(options_.batch, {source_->bounds()});
}

}  // namespace onebit::batches
