// The tensors of a flat buffer that have one trust ratio each, and their blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "onebit/kernels/blocks.h"

namespace onebit::kernels {

// Elements [begin, end) of a flat buffer that have one trust ratio and one weight decay. They are
// worked on in blocks of kBlockElements counted from `begin`, the last one shorter, so that a block
// never holds two tensors, wherever they begin.
struct LambTensor {
  int64_t begin = 0, end = 0;
  int64_t first_block = 0;  // blocks of the tensors before
  double weight_decay = 0;

  constexpr int64_t end_block() const { return first_block + blocks_in(end - begin); }
};

// body(tensor, block, first element, last) for the blocks [begin, end).
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

// Fails unless the tensors follow each other from 0 to `elements`, none empty.
void check_lamb_tensors(std::span<const LambTensor> tensors, int64_t elements);

}  // namespace onebit::kernels
