// The blocks of a flat buffer, to which the exchange's cuts, the headers of the sign codec and the
// numbers that 1-bit Adam keeps with the variance are aligned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace onebit::kernels {

inline constexpr int64_t kBlockElements = 2048;
// A sub-block is short enough to be within a row or two of an embedding.
inline constexpr int64_t kSubBlocks = 8;
inline constexpr int64_t kSubBlockElements = kBlockElements / kSubBlocks;

// The number of blocks in a range that begins at a block. The last one may be partial.
constexpr int64_t blocks_in(int64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

// A range that an optimizer treats uniformly: elements [begin, end), multiples of 16, with one
// weight decay and one learning rate.
struct UpdateRange {
  int64_t begin = 0, end = 0;
  double weight_decay = 0;
  double rate = 1;  // the update's learning rate is multiplied by it
};

// Calls body(begin, end, range) for each part of elements [begin, end) that is in a single
// range.
template <class Body>
void for_ranges(std::span<const UpdateRange> ranges, int64_t begin, int64_t end, const Body& body) {
  const auto ends_before = [](const UpdateRange& range, int64_t at) { return range.end <= at; };
  auto range = std::lower_bound(ranges.begin(), ranges.end(), begin, ends_before);
  for (int64_t at = begin; at < end; ++range) {
    const int64_t last = std::min(end, range->end);
    body(at, last, *range);
    at = last;
  }
}

// Elements [begin, end) of a flat buffer that share one trust ratio, one weight decay and one
// learning rate. They are processed in blocks of kBlockElements counted from `begin`, the last one
// shorter, so that a block never contains two tensors, wherever they begin.
struct LambTensor {
  int64_t begin = 0, end = 0;
  int64_t first_block = 0;  // number of blocks of the preceding tensors
  double weight_decay = 0;
  double rate = 1;  // the update's learning rate is multiplied by it

  constexpr int64_t end_block() const { return first_block + blocks_in(end - begin); }
};

// Calls body(tensor, block, first element, last) for the blocks [begin, end).
template <class Body>
void for_lamb_blocks(std::span<const LambTensor> tensors, int64_t begin, int64_t end,
                     const Body& body) {
  const auto ends_before = [begin](const LambTensor& one) { return one.end_block() <= begin; };
  auto tensor = std::partition_point(tensors.begin(), tensors.end(), ends_before);
  for (int64_t block = begin; block < end; ++block) {
    if (tensor->end_block() <= block) ++tensor;
    const int64_t first = tensor->begin + (block - tensor->first_block) * kBlockElements;
    body(*tensor, block, first, std::min(first + kBlockElements, tensor->end));
  }
}

// Fails unless the tensors are consecutive from 0 to `elements` and none is empty.
void check_lamb_tensors(std::span<const LambTensor> tensors, int64_t elements);

}  // namespace onebit::kernels
