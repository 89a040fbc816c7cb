// The blocks of a flat buffer, to which the exchange's cuts, the headers of the sign codec and the
// numbers that 1-bit Adam keeps with the variance are aligned.
#pragma once

#include <cstdint>

namespace onebit::kernels {

inline constexpr int64_t kBlockElements = 2048;
// A sub-block is short enough to be within a row or two of an embedding.
inline constexpr int64_t kSubBlocks = 8;
inline constexpr int64_t kSubBlockElements = kBlockElements / kSubBlocks;

// The number of blocks in a range that begins at a block. The last one may be partial.
constexpr int64_t blocks_in(int64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

}  // namespace onebit::kernels
