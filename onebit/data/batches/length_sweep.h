// Every item once, in batches of similar length, longest first, over all ranks: for prediction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::batches {

class LengthSweep {
 public:
  // `lengths` are in tokens, `batch` is a number of items. Error: an option out of range.
  LengthSweep(const std::vector<int32_t>& lengths, int64_t batch, int world_size, int rank);

  // The number of batches of this rank.
  int64_t batches() const;
  // The items of this rank's batch `index`.
  std::span<const uint32_t> items(int64_t index) const;
  // The items of `rank`, in the order of its batches.
  std::vector<uint32_t> items_of(int rank) const;

 private:
  int64_t batch_, world_size_, rank_;
  std::vector<uint32_t> order_;
};

}  // namespace onebit::batches
