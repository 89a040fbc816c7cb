// The blocks of a flat buffer: cuts for the wire, headers of the sign codec and the numbers that
// 1-bit Adam keeps beside the variance all follow them.
#pragma once

#include <cstdint>

namespace onebit::kernels {

inline constexpr int64_t kBlockElements = 2048;
// A sub-block is short enough to lie within a row or two of an embedding.
inline constexpr int64_t kSubBlocks = 8;
inline constexpr int64_t kSubBlockElements = kBlockElements / kSubBlocks;

// Blocks in a range that begins on a block; the last one may be partial.
constexpr int64_t blocks_in(int64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

}  // namespace onebit::kernels
