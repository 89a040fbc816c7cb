// The layout of a compressed chunk, from which its size and both codecs follow.
//
// A chunk on the wire, for e elements in b blocks, little-endian:
//   header [b] of kHeaderBytes | sign bits [ceil(e / 8)] | zeros to kChunkAlignment
// A header is a BlockHeader. Element i is bit i % 8 (least significant first) of byte i / 8, 1 for
// +.
#pragma once

#include <cstddef>
#include <cstdint>

#include "onebit/ground/base/philox.h"
#include "onebit/math/kernels/blocks.h"

namespace onebit::compress {

using kernels::blocks_in;
using kernels::kBlockElements;
using kernels::kSubBlockElements;
using kernels::kSubBlocks;

// The header of a block.
struct BlockHeader {
  uint16_t base = 0;   // bf16: the largest scale of the block
  uint16_t extra = 0;  // bf16: a number of the caller, averaged over ranks
  uint32_t codes = 0;  // of the scale of each sub-block, see code_of()
};
inline constexpr int64_t kHeaderBytes = sizeof(BlockHeader);
// The alignment of chunks and thus of the headers in them. Devices load and store headers in words
// of this size.
inline constexpr int64_t kChunkAlignment = sizeof(uint32_t);
inline constexpr int64_t kHeaderWords = kHeaderBytes / kChunkAlignment;
static_assert(kHeaderBytes == 8 && kHeaderBytes % kChunkAlignment == 0);
static_assert(offsetof(BlockHeader, extra) == sizeof(uint16_t) &&
              offsetof(BlockHeader, codes) == kChunkAlignment);

// The code of sub-block j is in bits [j kCodeBits, (j + 1) kCodeBits) of a header's codes.
inline constexpr uint32_t kCodeBits = 4, kCodeMask = (1u << kCodeBits) - 1;
static_assert(kSubBlocks * kCodeBits == 8 * sizeof(BlockHeader::codes));

ONEBIT_HOST_DEVICE constexpr uint32_t code_of(const BlockHeader& header, uint32_t sub_block) {
  return header.codes >> (kCodeBits * sub_block) & kCodeMask;
}
// The bits that are OR-ed into the codes of a header.
ONEBIT_HOST_DEVICE constexpr uint32_t code_at(uint32_t code, uint32_t sub_block) {
  return code << (kCodeBits * sub_block);
}

// Bytes of the signs of `elements`, and of a bitmap of `elements`.
constexpr int64_t sign_bytes(int64_t elements) {
  return (elements + 7) / 8;
}
// The offsets of the parts of a chunk.
constexpr int64_t header_offset(int64_t block) {
  return kHeaderBytes * block;
}
constexpr int64_t signs_offset(int64_t elements) {
  return header_offset(blocks_in(elements));
}
// With the zeros behind them.
constexpr int64_t padded_bytes(int64_t used_bytes) {
  return (used_bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
}
constexpr int64_t chunk_bytes(int64_t elements) {
  return signs_offset(elements) + padded_bytes(sign_bytes(elements));
}

}  // namespace onebit::compress
