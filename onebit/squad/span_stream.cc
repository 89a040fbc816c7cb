#include "onebit/squad/span_stream.h"

#include <algorithm>
#include <numeric>

#include "onebit/base/error.h"
#include "onebit/data/permutation.h"
#include "onebit/data/random_streams.h"

namespace onebit::squad {
namespace {

struct Dealt {
  uint32_t window;
  uint64_t sample;
};

// Fills `batch` with `count` windows; dealt(i) is the i-th.
template <typename DealtAt>
void fill(const Features& features, size_t count, const DealtAt& dealt_at, SpanBatch& batch) {
  batch.clear();
  batch.spans.resize(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const Dealt dealt = dealt_at(i);
    const Window& window = features.windows()[dealt.window];
    features.append(window, dealt.sample, batch);
    batch.spans[i] = window.start;
    batch.spans[count + i] = window.end;
    batch.windows.push_back(dealt.window);
  }
}

void check_ranks(int64_t world_size, int64_t rank) {
  require(world_size >= 1 && rank >= 0 && rank < world_size, "rank {} of {} ranks does not exist",
          rank, world_size);
}

}  // namespace

void SpanBatch::clear() {
  clear_rows();
  spans.clear();
  windows.clear();
}

void SpanBatch::reserve(const data::BatchBounds& bounds) {
  reserve_rows(bounds);
  const auto sequences_booked = static_cast<size_t>(bounds.sequences);
  spans.reserve(2 * sequences_booked);
  windows.reserve(sequences_booked);
}

SpanStream::SpanStream(const Features& features, const SpanStreamOptions& options)
    : features_(features), options_(options) {
  check_ranks(options.world_size, options.rank);
  require(options.micro_batch >= 1, "micro_batch is {}: it must be at least 1",
          options.micro_batch);
  require(options.accumulation >= 1, "accumulation is {}: it must be at least 1",
          options.accumulation);
  require(samples_per_epoch() >= static_cast<uint64_t>(options.world_size),
          "{} gives {} windows for {} ranks: use fewer ranks or more questions",
          features.dataset().source, samples_per_epoch(), options.world_size);
}

uint64_t SpanStream::samples_per_step() const {
  return static_cast<uint64_t>(options_.micro_batch * options_.accumulation * options_.world_size);
}

void SpanStream::build(uint64_t first_sample, int64_t micro_step, SpanBatch& batch) const {
  ONEBIT_INVARIANT(micro_step >= 0 && micro_step < options_.accumulation);
  const uint64_t epoch_size = samples_per_epoch();
  std::vector<Dealt> step(samples_per_step());
  uint64_t sample = first_sample;
  for (size_t filled = 0; filled < step.size();) {
    const uint64_t epoch = sample / epoch_size;
    const data::Permutation order(
        epoch_size, data::derived_seed(options_.seed, data::RandomStream::kEpoch, epoch));
    for (; filled < step.size() && sample / epoch_size == epoch; ++filled, ++sample) {
      step[filled] = {static_cast<uint32_t>(order(sample % epoch_size)), sample};
    }
  }
  const auto length = [&](const Dealt& dealt) {
    return features_.length(features_.windows()[dealt.window]);
  };
  std::stable_sort(step.begin(), step.end(),
                   [&](const Dealt& a, const Dealt& b) { return length(a) > length(b); });
  // Back and forth over the parts of the step, so that the longest windows are paired with the
  // shortest.
  const auto parts = static_cast<size_t>(options_.accumulation * options_.world_size);
  const auto part = static_cast<size_t>(micro_step * options_.world_size + options_.rank);
  fill(
      features_, static_cast<size_t>(options_.micro_batch),
      [&](size_t round) {
        return step[round * parts + (round % 2 == 0 ? part : parts - 1 - part)];
      },
      batch);
}

data::BatchBounds SpanStream::bounds() const {
  return {.sequences = options_.micro_batch,
          .rows = options_.micro_batch * features_.options().max_sequence_length};
}

SpanSweep::SpanSweep(const Features& features, int64_t batch, int world_size, int rank)
    : features_(features), batch_(batch), world_size_(world_size), rank_(rank) {
  check_ranks(world_size, rank);
  require(batch >= 1, "the prediction batch is {}: it must be at least 1", batch);
  order_.resize(features.windows().size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return features.length(features.windows()[a]) > features.length(features.windows()[b]);
  });
}

int64_t SpanSweep::batches() const {
  const int64_t all = (static_cast<int64_t>(order_.size()) + batch_ - 1) / batch_;
  return (all - rank_ + world_size_ - 1) / world_size_;
}

void SpanSweep::build(int64_t index, SpanBatch& batch) const {
  ONEBIT_INVARIANT(index >= 0 && index < batches());
  const auto begin = static_cast<size_t>((index * world_size_ + rank_) * batch_);
  const size_t end = std::min(order_.size(), begin + static_cast<size_t>(batch_));
  fill(
      features_, end - begin,
      [&](size_t i) {
        return Dealt{order_[begin + i], order_[begin + i]};
      },
      batch);
}

std::vector<uint32_t> SpanSweep::windows_of(int rank) const {
  std::vector<uint32_t> windows;
  for (size_t begin = static_cast<size_t>(rank * batch_); begin < order_.size();
       begin += static_cast<size_t>(world_size_ * batch_)) {
    const size_t end = std::min(order_.size(), begin + static_cast<size_t>(batch_));
    windows.insert(windows.end(), order_.begin() + static_cast<ptrdiff_t>(begin),
                   order_.begin() + static_cast<ptrdiff_t>(end));
  }
  return windows;
}

data::BatchBounds SpanSweep::bounds() const {
  return {.sequences = batch_, .rows = batch_ * features_.options().max_sequence_length};
}

}  // namespace onebit::squad
