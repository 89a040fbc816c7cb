#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/compress/sign_codec_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "onebit/compress/sign_block_inl.h"
#include "onebit/compress/sign_codec_backend.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::compress::HWY_NAMESPACE {

// Where the parts of a chunk lie.
template <typename Byte>
struct Wire {
  Byte* scales;
  Byte* extras;
  Byte* bits;

  Wire(Byte* chunk, int64_t elements, ExtraType extra)
      : scales(chunk),
        extras(chunk + 4 * blocks_in(elements)),
        bits(extras + extra_width(extra) * blocks_in(elements)) {}

  static int64_t extra_width(ExtraType extra) {
    return extra == ExtraType::kNone ? 0 : extra == ExtraType::kBF16 ? 2 : 4;
  }
};

inline float load_scale(const uint8_t* scales, int64_t block) {
  float scale;
  std::memcpy(&scale, scales + 4 * block, sizeof scale);
  return scale;
}

inline void store_extra(uint8_t* extras, int64_t block, float value, ExtraType extra) {
  if (extra == ExtraType::kBF16) {
    const bf16 rounded(value);
    std::memcpy(extras + 2 * block, &rounded, sizeof rounded);
  } else if (extra == ExtraType::kF32) {
    std::memcpy(extras + 4 * block, &value, sizeof value);
  }
}

inline float load_extra(const uint8_t* extras, int64_t block, ExtraType extra) {
  if (extra == ExtraType::kF32) return load_scale(extras, block);
  bf16 rounded;
  std::memcpy(&rounded, extras + 2 * block, sizeof rounded);
  return static_cast<float>(rounded);
}

// One block's memory; whole blocks are worked on in place.
struct Block {
  float* residual;
  const uint8_t* still;  // null: none
  uint8_t* bits;
  const float* next_values;  // for prefetching; any address
  int64_t elements;          // that count: not padding, not still
};

struct Coded {
  float scale, value_squares, residual_squares;
};

template <ScaleKind kScale, bool kStill, typename Source>
HWY_ATTR Coded code_as(const Source& source, const Block& block) {
  HWY_ALIGN float compensated[kBlock];
  const Sums sums = compensate<kScale, kStill>(source, block.residual, block.still, compensated);
  float scale = block.elements > 0 ? sums.level / static_cast<float>(block.elements) : 0.0f;
  if (kScale == ScaleKind::kRootMeanSquare) scale = std::sqrt(scale);
  const float left = quantise<kStill>(compensated, scale, block.still, block.residual, block.bits,
                                      block.next_values);
  return {scale, sums.squares, left};
}

template <typename Source>
Coded code(const Source& source, const Block& block, ScaleKind scale) {
  if (scale == ScaleKind::kMeanAbsolute) {
    return block.still != nullptr ? code_as<ScaleKind::kMeanAbsolute, true>(source, block)
                                  : code_as<ScaleKind::kMeanAbsolute, false>(source, block);
  }
  return block.still != nullptr ? code_as<ScaleKind::kRootMeanSquare, true>(source, block)
                                : code_as<ScaleKind::kRootMeanSquare, false>(source, block);
}

// Entries of a block marked in a bitmap, of which the block's part begins at `still`.
inline int64_t count_still(const uint8_t* still, int64_t elements) {
  int64_t count = 0;
  int64_t byte = 0;
  for (; byte + 8 <= elements / 8; byte += 8) {
    uint64_t word;
    std::memcpy(&word, still + byte, sizeof word);
    count += std::popcount(word);
  }
  for (int64_t i = byte * 8; i < elements; ++i) count += still[i / 8] >> (i % 8) & 1;
  return count;
}

// A partial block, made whole with still entries: padding enters no statistic.
struct PaddedBlock {
  float residual[kBlock] = {};
  uint8_t still[kBlockBytes];
  uint8_t bits[kBlockBytes];

  PaddedBlock(const float* residual_from, const uint8_t* still_from, int64_t elements) {
    std::memcpy(residual, residual_from, static_cast<size_t>(elements) * sizeof(float));
    std::memset(still, 0xFF, sizeof still);
    for (int64_t i = 0; i < elements; ++i) {
      const bool keep = still_from != nullptr && (still_from[i / 8] >> (i % 8) & 1);
      if (!keep) still[i / 8] = static_cast<uint8_t>(still[i / 8] & ~(1u << (i % 8)));
    }
  }
  void copy_out(float* residual_to, uint8_t* bits_to, int64_t elements) {
    std::memcpy(residual_to, residual, static_cast<size_t>(elements) * sizeof(float));
    if (elements % 8 != 0) {
      bits[elements / 8] = static_cast<uint8_t>(bits[elements / 8] & ((1u << (elements % 8)) - 1));
    }
    std::memcpy(bits_to, bits, static_cast<size_t>((elements + 7) / 8));
  }
};

// What encoding and averaging share: everything but the source of the values.
struct Sink {
  int64_t elements;
  float* residual;
  const uint8_t* still;
  Wire<uint8_t> wire;
  double* squares;  // [blocks, 2] or null
  ScaleKind scale;
};

// `source(count)` gives the values of the block, of which `count` exist.
template <typename Source>
void code_block(const Sink& sink, int64_t block, const float* next_values, const Source& source) {
  const int64_t first = block * kBlock, count = std::min(kBlock, sink.elements - first);
  const uint8_t* still = sink.still == nullptr ? nullptr : sink.still + first / 8;
  const int64_t still_count = still == nullptr ? 0 : count_still(still, count);
  float* residual = sink.residual + first;
  uint8_t* bits = sink.wire.bits + first / 8;
  Coded coded;
  if (count == kBlock) {
    coded = code(
        source(count),
        Block{residual, still_count > 0 ? still : nullptr, bits, next_values, count - still_count},
        sink.scale);
  } else {
    PaddedBlock padded(residual, still, count);
    coded = code(
        source(count),
        Block{padded.residual, padded.still, padded.bits, padded.residual, count - still_count},
        sink.scale);
    padded.copy_out(residual, bits, count);
  }
  std::memcpy(sink.wire.scales + 4 * block, &coded.scale, sizeof coded.scale);
  if (sink.squares != nullptr) {
    sink.squares[2 * block] = static_cast<double>(coded.value_squares);
    sink.squares[2 * block + 1] = static_cast<double>(coded.residual_squares);
  }
}

void encode_blocks(const Encode& args, int64_t begin, int64_t end) {
  const int64_t elements = args.values.elements();
  const Sink sink{elements,
                  args.residual.data<float>(),
                  args.still.data<uint8_t>(),
                  Wire<uint8_t>(args.chunk.data<uint8_t>(), elements, args.extra),
                  args.block_squares.data<double>(),
                  args.scale};
  const float* values = args.values.data<float>();
  const float* extras = args.extras.data<float>();
  float padded[kBlock];
  for (int64_t block = begin; block < end; ++block) {
    const float* from = values + block * kBlock;
    code_block(sink, block, from + kBlock, [&](int64_t count) {
      if (count == kBlock) return GivenValues{from};
      std::fill(std::copy_n(from, count, padded), padded + kBlock, 0.0f);
      return GivenValues{padded};
    });
    if (args.extra != ExtraType::kNone) {
      store_extra(sink.wire.extras, block, extras[block], args.extra);
    }
  }
}

void average_blocks(const Average& args, int64_t begin, int64_t end) {
  const int64_t elements = args.residual.elements();
  const int64_t ranks = args.chunks.extent(0), stride = args.chunk.elements();
  const Sink sink{elements,
                  args.residual.data<float>(),
                  args.still.data<uint8_t>(),
                  Wire<uint8_t>(args.chunk.data<uint8_t>(), elements, args.extra),
                  args.block_squares.data<double>(),
                  args.scale};
  const Wire<const uint8_t> first(args.chunks.data<uint8_t>(), elements, args.extra);
  const float share = 1.0f / static_cast<float>(ranks);
  std::vector<float> scales(static_cast<size_t>(ranks));
  std::vector<uint8_t> padded;
  for (int64_t block = begin; block < end; ++block) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      scales[static_cast<size_t>(rank)] = load_scale(first.scales + rank * stride, block);
    }
    const uint8_t* bits = first.bits + block * kBlockBytes;
    code_block(sink, block, sink.residual, [&](int64_t count) {
      if (count == kBlock) return AveragedSigns{bits, stride, scales.data(), ranks, share};
      padded.assign(static_cast<size_t>(ranks * kBlockBytes), 0);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        std::copy_n(bits + rank * stride, (count + 7) / 8, padded.begin() + rank * kBlockBytes);
      }
      return AveragedSigns{padded.data(), kBlockBytes, scales.data(), ranks, share};
    });
    if (args.extra == ExtraType::kNone) continue;
    float sum = load_extra(first.extras, block, args.extra);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      sum += load_extra(first.extras + rank * stride, block, args.extra);
    }
    store_extra(sink.wire.extras, block, sum * share, args.extra);
  }
}

void decode_blocks(const Decode& args, int64_t begin, int64_t end) {
  const int64_t elements = args.values.elements();
  const Wire<const uint8_t> wire(args.chunk.data<uint8_t>(), elements, args.extra);
  const uint8_t* all_still = args.still.data<uint8_t>();
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * kBlock, count = std::min(kBlock, elements - first);
    const uint8_t* still = all_still == nullptr ? nullptr : all_still + first / 8;
    if (still != nullptr && count_still(still, count) == 0) still = nullptr;
    const float scale = load_scale(wire.scales, block);
    float* to = args.values.data<float>() + first;
    if (count < kBlock) {
      PaddedBlock padded(to, still, count);
      std::copy_n(wire.bits + first / 8, (count + 7) / 8, padded.bits);
      decode_block<true>(padded.bits, scale, padded.still, padded.residual);
      std::copy_n(padded.residual, count, to);
    } else if (still != nullptr) {
      decode_block<true>(wire.bits + first / 8, scale, still, to);
    } else {
      decode_block<false>(wire.bits + first / 8, scale, nullptr, to);
    }
    if (args.extra != ExtraType::kNone) {
      args.extras.data<float>()[block] = load_extra(wire.extras, block, args.extra);
    }
  }
}

}  // namespace onebit::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::compress {

HWY_EXPORT(encode_blocks);
HWY_EXPORT(average_blocks);
HWY_EXPORT(decode_blocks);

namespace {

// Blocks worth a thread: 64 KiB of values.
constexpr int64_t kGrainBlocks = 8;

template <typename Args, typename Kernel>
void over_blocks(Context& context, const Args& args, const Kernel& kernel) {
  context.parallel_for(args.blocks.end - args.blocks.begin, kGrainBlocks,
                       [&](int64_t begin, int64_t end) {
                         kernel(args, args.blocks.begin + begin, args.blocks.begin + end);
                       });
}

}  // namespace

void encode_cpu(Context& context, const Encode& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(encode_blocks));
}

void average_cpu(Context& context, const Average& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(average_blocks));
}

void decode_cpu(Context& context, const Decode& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(decode_blocks));
}

}  // namespace onebit::compress
#endif
