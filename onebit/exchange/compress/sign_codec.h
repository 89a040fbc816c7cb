// One bit per element and one scale per sub-block, with error feedback: sign(c) * scale for
// c = value + residual, and the new residual c - sign(c) * scale (Seide et al. 2014, and Tang et
// al., "1-bit Adam", arXiv 2102.02888). The scale is kSignGain times their least-squares one.
//
// A block is kBlockElements consecutive elements of the flat buffer, cut into sub-blocks that are
// short enough to be within a row or two of an embedding: the rows of frequent and of rare words
// differ a thousandfold. The scale of a sub-block, kSignGain times the mean absolute value of its
// elements (without still entries and padding), is sent as a 4-bit code relative to the largest
// scale of the block (code_of()). A sub-block too small for any code sends nothing this
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
#include <cstring>
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
// The alignment of chunks and headers. Devices load and store headers in words of this size.
inline constexpr int64_t kChunkAlignment = sizeof(uint32_t);
inline constexpr int64_t kHeaderWords = kHeaderBytes / kChunkAlignment;

// The code of sub-block j is in bits [j kCodeBits, (j + 1) kCodeBits) of a header's codes.
inline constexpr uint32_t kCodeBits = 4, kCodeMask = (1u << kCodeBits) - 1;
ONEBIT_HOST_DEVICE constexpr uint32_t code_of(const BlockHeader& header, uint32_t sub_block) {
  return header.codes >> (kCodeBits * sub_block) & kCodeMask;
}
// The bits that are OR-ed into the codes of a header.
ONEBIT_HOST_DEVICE constexpr uint32_t code_at(uint32_t code, uint32_t sub_block) {
  return code << (kCodeBits * sub_block);
}

// The scales of a block's sub-blocks, written once for CPUs and CUDA devices, which must agree bit
// for bit: base * 2^(-code / 2) for codes 0..14, 0 for code 15. The base is the largest scale as
// bf16, or 0 below kMinLevel, with codes 15. The code of a sub-block is the number of limits that
// its scale is below, which is the nearest in ratio.

// pi / 2. The mean absolute value is the least-squares scale of signs, but it transmits only 2 / pi
// of a small signal in Gaussian noise at once. Error feedback transmits the rest later. A gradient
// that is late by a step or two makes Adam unstable, since it trains at the edge of stability: with
// beta1 = 0.9 the largest stable curvature falls from 38 to 1 over the learning rate. With this
// scale a small signal is transmitted nearly completely at once, and mostly noise is left for the
// feedback (docs/compression.md).
inline constexpr float kSignGain = 1.57079633f;

// The residual of a block below this level is set to 0, and so is an owner's momentum below it.
// Without gradients, as in rows of words that do not occur, both would shrink to the smallest
// denormal numbers and stay there, which slows processors tenfold, even if only their squares are
// denormal. Coded values are of size 1, so this is far below what f32 resolves next to them.
inline constexpr float kMinLevel = 0x1p-63f;  // its square is the least normal number
inline constexpr int kScaleCodes = 15;
inline constexpr uint32_t kNothingSent = 15;               // the code of scale 0
inline constexpr uint32_t kNothingSentAtAll = 0xFFFFFFFF;  // all codes of a header

// 2^(-exponent), exactly.
ONEBIT_HOST_DEVICE inline float inverse_power(uint32_t exponent) {
  const uint32_t word = (127 - exponent) << 23;
  float power;
  std::memcpy(&power, &word, sizeof power);
  return power;
}

// The upper end of the range of code k + 1, relative to the base: 2^(-(k + 0.5) / 2).
ONEBIT_HOST_DEVICE inline float code_limit(uint32_t k) {
  return (k % 2 == 0 ? 0.840896415f : 0.594603558f) * inverse_power(k / 2);
}

// The transmitted scale, relative to the base.
ONEBIT_HOST_DEVICE inline float scale_factor(uint32_t code) {
  const float factor = (code % 2 == 0 ? 1.0f : 0.707106781f) * inverse_power(code / 2);
  return code == kNothingSent ? 0.0f : factor;
}

ONEBIT_HOST_DEVICE inline float base_value(uint16_t base) {
  const uint32_t word = uint32_t{base} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// bf16 of a non-negative level, rounded to nearest even. A level that would round to infinity
// becomes the largest finite number, and one below kMinLevel becomes 0.
ONEBIT_HOST_DEVICE inline uint16_t base_of(float level) {
  constexpr uint32_t kLargest = 0x7F7F;
  if (level < kMinLevel) return 0;
  uint32_t word;
  std::memcpy(&word, &level, sizeof word);
  const uint32_t rounded = (word + 0x7FFFu + (word >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>(rounded < kLargest ? rounded : kLargest);
}

// Bytes of the signs of `elements`, and of a bitmap of `elements`.
constexpr int64_t sign_bytes(int64_t elements) {
  return (elements + 7) / 8;
}
constexpr int64_t header_offset(int64_t block) {
  return kHeaderBytes * block;
}
constexpr int64_t signs_offset(int64_t elements) {
  return header_offset(blocks_in(elements));
}
constexpr int64_t padded_bytes(int64_t used_bytes) {  // with the zeros behind them
  return (used_bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
}
constexpr int64_t chunk_bytes(int64_t elements) {
  return signs_offset(elements) + padded_bytes(sign_bytes(elements));
}

// Blocks [begin, end) of a chunk, which may be coded in parts, in any order, each once: the network
// can be polled in between.
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
// after each is sent, with kMomentumLead (sign_codec.cc).
MomentumStep momentum_step(double beta1, int64_t updates = 1,
                           double limit = std::numeric_limits<float>::max());

// The owner's step: a = (sum of the decoded values over ranks, in rank order) / ranks, in f32. With
// a momentum, momentum = beta momentum + weight a (at most step.limit, 0 below kMinLevel), and the
// owner sends momentum + lead (momentum - momentum before) instead of a: the noise of the signs is
// thus smoothed before it is coded again, and the lead compensates the delay of signs. Then c = a
// (or the momentum with its lead) + residual is coded as in encode(), with scales of at most
// step.limit. Extras are averaged in rank order, too, in f32.
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
