#include "onebit/data/batches/length_sweep.h"

#include <algorithm>
#include <numeric>

#include "onebit/ground/base/error.h"

namespace onebit::batches {

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
