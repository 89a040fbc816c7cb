// One bit an element and one scale a block, with error feedback: sign(c) * scale for c = value +
// residual, and the new residual c - sign(c) * scale (Seide et al. 2014; Tang et al., "1-bit Adam",
// arXiv 2102.02888; the mean absolute value is the least-squares scale of signs).
//
// A block is comm::kBlockElements consecutive elements of the flat buffer; the last block of a
// buffer counts its true elements. Zero (also -0) is coded as +1. Values must be finite: the caller
// agrees on that first.
//
// A chunk on the wire, for e elements in b blocks, little-endian:
//   f32 scale [b] | extra [b] (absent, bf16 or f32) | sign bits [ceil(e / 8)] | zeros to 4 bytes
// Element i is bit i % 8 (least significant first) of byte i / 8, 1 for +.
#pragma once

#include <cstdint>

#include "onebit/comm/bucket.h"
#include "onebit/device/context.h"
#include "onebit/tensor/view.h"

namespace onebit::compress {

using comm::blocks_in;
using comm::kBlockElements;

enum class ScaleKind {
  kMeanAbsolute,    // least error
  kRootMeanSquare,  // keeps the norm
};

// One number a block that travels beside the scale and is averaged over ranks.
enum class ExtraType { kNone, kBF16, kF32 };

int64_t chunk_bytes(int64_t elements, ExtraType extra);

// Blocks [begin, end) of a chunk: chunks may be coded in parts, so that the network gets its turn
// in between. The parts of a chunk may be coded in any order, each once.
struct BlockRange {
  int64_t begin = 0, end = 0;
};

// A bitmap u8 [ceil(elements / 8)] in the bit order of the wire: 1 marks an entry that stays still.
// Still entries are left out of scales and residuals, their residual becomes 0, and they are
// decoded as exactly 0. Must be the same on every rank. An empty view: none. A block of still
// entries alone has scale 0.
struct Encode {
  ConstView values;    // f32 [elements]
  View residual;       // f32 [elements]  read, then overwritten
  ConstView still;     // bitmap, or empty
  ConstView extras;    // f32 [blocks], empty for ExtraType::kNone
  View chunk;          // u8 [chunk_bytes]  overwritten
  View block_squares;  // f64 [blocks, 2]  overwritten with the sums of squares of values (not
                       // still) and of the new residual; empty if not wanted
  ScaleKind scale = ScaleKind::kMeanAbsolute;
  ExtraType extra = ExtraType::kNone;
  BlockRange blocks;  // what to do now
};
void encode(Context& context, const Encode& args);

// The owner's step: c = (sum over ranks in rank order of what was decoded) / ranks + residual, in
// f32, then as encode. Extras are averaged in rank order too.
struct Average {
  ConstView chunks;    // u8 [ranks, chunk_bytes]
  View residual;       // f32 [elements]  read, then overwritten
  ConstView still;     // bitmap, or empty
  View chunk;          // u8 [chunk_bytes]  overwritten
  View block_squares;  // f64 [blocks, 2]  overwritten: squares of the average and of the residual
  ScaleKind scale = ScaleKind::kMeanAbsolute;
  ExtraType extra = ExtraType::kNone;
  BlockRange blocks;  // what to do now
};
void average(Context& context, const Average& args);

struct Decode {
  ConstView chunk;  // u8 [chunk_bytes]
  ConstView still;  // bitmap, or empty
  View values;      // f32 [elements]  overwritten
  View extras;      // f32 [blocks]  overwritten, empty for ExtraType::kNone
  ExtraType extra = ExtraType::kNone;
  BlockRange blocks;
};
void decode(Context& context, const Decode& args);

}  // namespace onebit::compress
