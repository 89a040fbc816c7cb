#include "onebit/data/pair_source.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "onebit/base/error.h"
#include "onebit/data/example_builder.h"
#include "onebit/data/random_streams.h"

namespace onebit::data {

PairSource::PairSource(std::shared_ptr<const TokenStore> store, const PairOptions& pairs,
                       const MaskOptions& masks, uint64_t seed, int threads)
    : store_(std::move(store)),
      pairs_(pairs),
      masker_(*store_->vocabulary(), masks),
      seed_(seed),
      threads_(threads),
      epoch_begin_{0} {
  check(pairs);
}

PairSource::~PairSource() {
  if (ahead_.valid()) ahead_.wait();
}

std::shared_ptr<const EpochIndex> PairSource::build(uint64_t epoch, int threads) const {
  const PairWalkOptions options{.pairs = pairs_,
                                .epoch_seed = derived_seed(seed_, RandomStream::kEpoch, epoch)};
  return std::make_shared<const EpochIndex>(*store_, options, threads);
}

// With mutex_ held.
std::shared_ptr<const EpochIndex> PairSource::index(uint64_t epoch) {
  const auto known = indexes_.find(epoch);
  if (known != indexes_.end()) return known->second;
  std::shared_ptr<const EpochIndex> made;
  if (ahead_.valid() && ahead_epoch_ == epoch) {
    made = ahead_.get();
  } else {
    made = build(epoch, threads_);
  }
  // The one in use and its neighbours: batches in the making straddle the end of an epoch.
  if (indexes_.size() >= 3) {
    const bool oldest = indexes_.begin()->first < epoch;
    indexes_.erase(oldest ? indexes_.begin() : std::prev(indexes_.end()));
  }
  indexes_.emplace(epoch, made);
  return made;
}

// With mutex_ held.
void PairSource::build_ahead(uint64_t epoch) {
  if (indexes_.contains(epoch) || (ahead_.valid() && ahead_epoch_ == epoch)) return;
  if (ahead_.valid()) ahead_.wait();
  ahead_epoch_ = epoch;
  ahead_ = std::async(std::launch::async, [this, epoch] { return build(epoch, 1); });
}

uint64_t PairSource::examples(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  return index(epoch)->examples();
}

DataPosition PairSource::locate(uint64_t counter) {
  const std::lock_guard lock(mutex_);
  while (counter >= epoch_begin_.back()) {
    epoch_begin_.push_back(epoch_begin_.back() + index(epoch_begin_.size() - 1)->examples());
  }
  const auto after = std::upper_bound(epoch_begin_.begin(), epoch_begin_.end(), counter);
  const auto epoch = static_cast<size_t>(after - epoch_begin_.begin()) - 1;
  return {epoch, counter - epoch_begin_[epoch]};
}

void PairSource::append(DataPosition position, uint64_t sample, Batch& batch) {
  std::shared_ptr<const EpochIndex> epoch_index;
  {
    const std::lock_guard lock(mutex_);
    epoch_index = index(position.epoch);
    if (position.index >= epoch_index->examples() / 2) build_ahead(position.epoch + 1);
  }
  uint64_t number = 0;
  const Pair pair = epoch_index->find(*store_, position.index, &number);
  RandomSequence random =
      random_sequence(epoch_index->options().epoch_seed, RandomStream::kExample, number);
  const int64_t first_row = batch.rows();
  append_pair(*store_, pair, pairs_, sample, random, batch);
  masker_.mask(random, first_row, batch);
}

}  // namespace onebit::data
