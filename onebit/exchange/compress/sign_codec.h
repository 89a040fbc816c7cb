// One bit per element and one scale per sub-block, with error feedback: sign(c) * scale for
// c = value + residual, and the new residual c - sign(c) * scale (Seide et al. 2014, and Tang et
// al., "1-bit Adam", arXiv 2102.02888). The scale is kSignGain times their least-squares one.
//
// A block is kBlockElements consecutive elements of the flat buffer, cut into sub-blocks that are
// short enough to be within a row or two of an embedding: the rows of frequent and of rare words
// differ a thousandfold. The scale of a sub-block, kSignGain times the mean absolute value of its
// elements (without still entries and padding), is sent as a 4-bit code relative to the largest
// scale of the block (sub_block_scale.h). A sub-block too small for any code sends nothing this
// time. Its values stay in the residual. A block with all scales below kMinLevel is treated as
// zeros: it sends nothing, and its residual becomes 0. Zero (also -0) is coded as +1. Values must
// be finite, which callers agree on first.
//
// A chunk on the wire, for e elements in b blocks, little-endian:
//   header [b] of kHeaderBytes | sign bits [ceil(e / 8)] | zeros to kChunkAlignment
// A header is a BlockHeader. Element i is bit i % 8 (least significant first) of byte i / 8, 1 for
// +.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"

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

// Blocks [begin, end) of a chunk: a chunk may be coded in parts, so that the network can be polled
// in between. The parts may be coded in any order, each once.
struct BlockRange {
  int64_t begin = 0, end = 0;
};

// A bitmap u8 [ceil(elements / 8)] in the bit order of the wire: 1 marks a still entry. Still
// entries are excluded from scales and residuals, their residual becomes 0, and they are decoded as
// exactly 0. The bitmap must be the same on every rank. An empty view: no still entries.
struct Encode {
  ConstView values;    // f32 [elements]
  View residual;       // f32 [elements]  read, then overwritten
  ConstView still;     // bitmap, or empty
  ConstView extras;    // f32 [blocks]. Empty: zeros are sent
  View chunk;          // u8 [chunk_bytes]  overwritten
  View block_squares;  // f64 [blocks, 2]  overwritten with the sums of squares of values (not
                       // still) and of the new residual. Empty if not wanted
  BlockRange blocks;   // the part to code now
};
void encode(Context& context, const Encode& args);

// How an owner's momentum is updated by an average: beta momentum + weight average, clamped to
// [-limit, limit]. No scale that the owner sends is larger either: what is missing of it stays in
// the residual.
struct MomentumStep {
  double beta = 0, weight = 1;
  double lead = 0;  // in what is sent, see Average
  double limit = std::numeric_limits<float>::max();
};

// The step for an average of sums over `updates` updates of Adam with `beta1`, computed as if each
// update had had the mean: the momentum is the one after the last of them. The mean of the momenta
// after each is sent, with kMomentumLead.
MomentumStep momentum_step(double beta1, int64_t updates = 1,
                           double limit = std::numeric_limits<float>::max());

// The owner's step: a = (sum of the decoded values over ranks, in rank order) / ranks, in f32. With
// a momentum, momentum = beta momentum + weight a (at most step.limit, 0 below kMinLevel), and the
// owner sends momentum + lead (momentum - momentum before) instead of a: the noise of the signs is
// thus smoothed before it is coded again, and the lead compensates the delay of signs
// (kMomentumLead).
// c = a (or the momentum with its lead) + residual, then as in encode(), with scales of at most
// step.limit. Extras are averaged in
// rank order, too, in f32.
struct Average {
  ConstView chunks;    // u8 [ranks, chunk_bytes]
  View residual;       // f32 [elements]  read, then overwritten
  ConstView still;     // bitmap, or empty
  View chunk;          // u8 [chunk_bytes]  overwritten
  View block_squares;  // f64 [blocks, 2]  overwritten: squares of the coded values, of the residual
  View momentum;       // f32 [elements]  updated, except for still entries. Empty: none
  MomentumStep step;
  BlockRange blocks;  // the part to code now
};
void average(Context& context, const Average& args);

struct Decode {
  ConstView chunk;       // u8 [chunk_bytes]
  int64_t elements = 0;  // of the chunk
  ConstView still;       // bitmap, or empty
  View values;           // f32 [elements of `blocks`]  overwritten, empty if not wanted
  View extras;           // f32 [blocks of the chunk]  overwritten, empty if not wanted
  BlockRange blocks;     // the part to decode now
};
// The elements of a range of a chunk's blocks.
Range elements_of(BlockRange blocks, int64_t elements);
void decode(Context& context, const Decode& args);

}  // namespace onebit::compress
