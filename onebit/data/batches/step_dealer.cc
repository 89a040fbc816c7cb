#include "onebit/data/batches/step_dealer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "onebit/data/batches/permutation.h"
#include "onebit/ground/base/error.h"

namespace onebit::batches {

StepDealer::StepDealer(std::vector<int32_t> lengths, const DealOptions& options,
                       const std::string& source)
    : lengths_(std::move(lengths)), options_(options) {
  require(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size,
          "rank {} of {} ranks does not exist", options.rank, options.world_size);
  require(options.micro_batch >= 1, "micro_batch is {}: it must be at least 1",
          options.micro_batch);
  require(options.accumulation >= 1, "accumulation is {}: it must be at least 1",
          options.accumulation);
  parts_ = parts_of(options);
  ONEBIT_INVARIANT(parts_.largest() <= options.micro_batch);
  require(samples_per_epoch() >= static_cast<uint64_t>(options.world_size),
          "{} are too few for {} ranks: use fewer ranks or more data", source, options.world_size);
}

std::vector<DealtSample> StepDealer::deal(uint64_t first_sample, int64_t micro_step) const {
  ONEBIT_INVARIANT(micro_step >= 0 && micro_step < options_.accumulation);
  const uint64_t epoch_size = samples_per_epoch();
  std::vector<DealtSample> step(samples_per_step());
  uint64_t sample = first_sample;
  for (size_t filled = 0; filled < step.size();) {
    const uint64_t epoch = sample / epoch_size;
    const Permutation order(epoch_size, derived_seed(options_.seed, RandomStream::kEpoch, epoch));
    for (; filled < step.size() && sample / epoch_size == epoch; ++filled, ++sample) {
      step[filled] = {static_cast<uint32_t>(order(sample % epoch_size)), sample};
    }
  }
  std::stable_sort(step.begin(), step.end(), [&](const DealtSample& a, const DealtSample& b) {
    return lengths_[a.item] > lengths_[b.item];
  });
  // Assigns items back and forth over the parts of the step, so that the longest are paired with
  // the shortest. The last round may reach only the first parts.
  const auto parts = static_cast<size_t>(parts_.count());
  const int64_t own = parts_.part_of(options_.rank, micro_step);
  const auto part = static_cast<size_t>(own);
  std::vector<DealtSample> mine(static_cast<size_t>(parts_.size(own)));
  for (size_t round = 0; round < mine.size(); ++round) {
    const size_t first = round * parts, dealt = std::min(parts, step.size() - first);
    mine[round] = step[first + (round % 2 == 0 ? part : dealt - 1 - part)];
  }
  return mine;
}

LengthSweep::LengthSweep(const std::vector<int32_t>& lengths, int64_t batch, int world_size,
                         int rank)
    : batch_(batch), world_size_(world_size), rank_(rank), order_(lengths.size()) {
  require(world_size >= 1 && rank >= 0 && rank < world_size, "rank {} of {} ranks does not exist",
          rank, world_size);
  require(batch >= 1, "the prediction batch is {}: it must be at least 1", batch);
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
}

int64_t LengthSweep::batches() const {
  const int64_t all = (static_cast<int64_t>(order_.size()) + batch_ - 1) / batch_;
  return (all - rank_ + world_size_ - 1) / world_size_;
}

std::span<const uint32_t> LengthSweep::items(int64_t index) const {
  ONEBIT_INVARIANT(index >= 0 && index < batches());
  const auto begin = static_cast<size_t>((index * world_size_ + rank_) * batch_);
  const size_t end = std::min(order_.size(), begin + static_cast<size_t>(batch_));
  return std::span(order_).subspan(begin, end - begin);
}

std::vector<uint32_t> LengthSweep::items_of(int rank) const {
  std::vector<uint32_t> items;
  for (size_t begin = static_cast<size_t>(rank * batch_); begin < order_.size();
       begin += static_cast<size_t>(world_size_ * batch_)) {
    const size_t end = std::min(order_.size(), begin + static_cast<size_t>(batch_));
    items.insert(items.end(), order_.begin() + static_cast<ptrdiff_t>(begin),
                 order_.begin() + static_cast<ptrdiff_t>(end));
  }
  return items;
}

}  // namespace onebit::batches
