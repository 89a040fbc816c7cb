#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/exchange/compress/sign_codec_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "onebit/exchange/compress/sign_block_inl.h"
#include "onebit/exchange/compress/sign_codec.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::compress::HWY_NAMESPACE {

// The addresses of the parts of a chunk.
template <typename Byte>
struct Wire {
  Byte* headers;
  Byte* bits;

  Wire(Byte* chunk, int64_t elements) : headers(chunk), bits(chunk + signs_offset(elements)) {}
};

// Chunks are only aligned to kChunkAlignment, so headers are copied.
inline BlockHeader load_header(const uint8_t* headers, int64_t block) {
  BlockHeader header;
  std::memcpy(&header, headers + header_offset(block), sizeof header);
  return header;
}

inline void store_header(uint8_t* headers, int64_t block, const BlockHeader& header) {
  std::memcpy(headers + header_offset(block), &header, sizeof header);
}

inline float extra_value(const BlockHeader& header) {
  bf16 rounded;
  rounded.bits = header.extra;
  return static_cast<float>(rounded);
}

inline void scales_of(const BlockHeader& header, float* scales) {
  const float base = base_value(header.base);
  for (uint32_t j = 0; j < kSubBlocks; ++j) {
    scales[j] = base * scale_factor(code_of(header, j));
  }
}

// The memory of one block. Full blocks are processed in place.
struct Block {
  float* residual;
  const uint8_t* still;  // null: none
  uint8_t* bits;
  const float* next_values;  // for prefetching. Any address
  const float* divisors;  // [kSubBlocks]  elements that are neither padding nor still. At least 1
};

struct Coded {
  BlockHeader header;
  float value_squares, residual_squares;
};

// The base and the codes for levels [kSubBlocks], which are mean absolute values. Both passes over
// a block wait for it, so the inner loops are over sub-blocks, which the compiler vectorizes.
inline BlockHeader header_of(const float* levels) {
  float largest[kSubBlocks];
  std::copy_n(levels, kSubBlocks, largest);
  for (int64_t half = kSubBlocks / 2; half >= 1; half /= 2) {
    for (int64_t j = 0; j < half; ++j) largest[j] = std::max(largest[j], largest[j + half]);
  }
  BlockHeader header;
  header.base = base_of(largest[0]);
  const float base = base_value(header.base);
  uint32_t codes[kSubBlocks] = {};
  for (uint32_t k = 0; k < kScaleCodes; ++k) {
    const float limit = base * code_limit(k);
    for (int64_t j = 0; j < kSubBlocks; ++j) codes[j] += levels[j] < limit ? 1 : 0;
  }
  for (uint32_t j = 0; j < kSubBlocks; ++j) header.codes |= code_at(codes[j], j);
  if (header.base == 0) header.codes = kNothingSentAtAll;
  return header;
}

template <bool kStill, typename Source>
HWY_ATTR Coded code_as(const Source& source, const Block& block) {
  HWY_ALIGN float compensated[kBlock];
  Sums sums = compensate<kStill>(source, block.residual, block.still, compensated);
  const float most = source.most();
  for (int64_t j = 0; j < kSubBlocks; ++j)
    sums.levels[j] = std::min(sums.levels[j] / block.divisors[j] * kSignGain, most);
  const BlockHeader header = header_of(sums.levels);
  if (header.base == 0) std::fill_n(compensated, kBlock, 0.0f);
  float scales[kSubBlocks];
  scales_of(header, scales);
  const float left = quantise<kStill>(compensated, scales, block.still, block.residual, block.bits,
                                      block.next_values);
  return {header, sums.squares, left};
}

template <typename Source>
Coded code(const Source& source, const Block& block) {
  return block.still != nullptr ? code_as<true>(source, block) : code_as<false>(source, block);
}

// The number of entries marked in `bytes` bytes of a bitmap. `bytes` is a multiple of 8.
inline int64_t count_still(const uint8_t* still, int64_t bytes) {
  int64_t count = 0;
  for (int64_t byte = 0; byte < bytes; byte += 8) {
    uint64_t word;
    std::memcpy(&word, still + byte, sizeof word);
    count += std::popcount(word);
  }
  return count;
}

// A partial block, completed with still entries, so that padding enters no statistic.
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
    // What no element has is zero, to the end of the chunk.
    const int64_t used_bytes = sign_bytes(elements), end = padded_bytes(used_bytes);
    std::memset(bits + used_bytes, 0, static_cast<size_t>(end - used_bytes));
    std::memcpy(bits_to, bits, static_cast<size_t>(end));
  }
};

// What encoding and averaging share: everything except the source of the values.
struct Sink {
  int64_t elements;
  float* residual;
  const uint8_t* still;
  Wire<uint8_t> wire;
  double* squares;  // [blocks, 2] or null
};

// Codes a full block. `still` marks its still entries, null if there are none.
template <typename Source>
Coded code_whole(const Source& source, float* residual, const uint8_t* still, uint8_t* bits,
                 const float* next_values) {
  float divisors[kSubBlocks];
  int64_t total = 0;
  for (int64_t j = 0; j < kSubBlocks; ++j) {
    int64_t counted = kSubBlockElements;
    if (still != nullptr) counted -= count_still(still + j * kSubBlockBytes, kSubBlockBytes);
    divisors[j] = static_cast<float>(std::max<int64_t>(counted, 1));  // the sum of none is 0
    total += counted;
  }
  const uint8_t* some_still = total < kBlock ? still : nullptr;
  return code(source, Block{residual, some_still, bits, next_values, divisors});
}

// `source(count)` returns the values of the block, of which `count` exist.
template <typename Source>
void code_block(const Sink& sink, int64_t block, const float* next_values, float extra,
                const Source& source) {
  const int64_t first = block * kBlock, count = std::min(kBlock, sink.elements - first);
  const uint8_t* still = sink.still == nullptr ? nullptr : sink.still + first / 8;
  float* residual = sink.residual + first;
  uint8_t* bits = sink.wire.bits + first / 8;
  Coded coded;
  if (count == kBlock) {
    coded = code_whole(source(count), residual, still, bits, next_values);
  } else {
    PaddedBlock padded(residual, still, count);
    coded = code_whole(source(count), padded.residual, padded.still, padded.bits, padded.residual);
    padded.copy_out(residual, bits, count);
  }
  coded.header.extra = bf16(extra).bits;
  store_header(sink.wire.headers, block, coded.header);
  if (sink.squares != nullptr) {
    sink.squares[2 * block] = static_cast<double>(coded.value_squares);
    sink.squares[2 * block + 1] = static_cast<double>(coded.residual_squares);
  }
}

void encode_blocks(const Encode& args, int64_t begin, int64_t end) {
  const int64_t elements = args.values.elements();
  const Sink sink{elements, args.residual.data<float>(), args.still.data<uint8_t>(),
                  Wire<uint8_t>(args.chunk.data<uint8_t>(), elements),
                  args.block_squares.data<double>()};
  const float* values = args.values.data<float>();
  const float* extras = args.extras.data<float>();
  float padded[kBlock];
  for (int64_t block = begin; block < end; ++block) {
    const float* from = values + block * kBlock;
    const float extra = extras == nullptr ? 0.0f : extras[block];
    code_block(sink, block, from + kBlock, extra, [&](int64_t count) {
      if (count == kBlock) return GivenValues{from};
      std::fill(std::copy_n(from, count, padded), padded + kBlock, 0.0f);
      return GivenValues{padded};
    });
  }
}

void average_blocks(const Average& args, int64_t begin, int64_t end) {
  const int64_t elements = args.residual.elements();
  const int64_t ranks = args.chunks.extent(0), stride = args.chunk.elements();
  const Sink sink{elements, args.residual.data<float>(), args.still.data<uint8_t>(),
                  Wire<uint8_t>(args.chunk.data<uint8_t>(), elements),
                  args.block_squares.data<double>()};
  const Wire<const uint8_t> first(args.chunks.data<uint8_t>(), elements);
  const float share = 1.0f / static_cast<float>(ranks);
  std::vector<float> scales(static_cast<size_t>(ranks * kSubBlocks));
  std::vector<uint8_t> padded;
  float* momenta = args.momentum.data<float>();
  float padded_momentum[kBlock];
  uint8_t padded_still[kBlockBytes];
  const MomentumFactors factors(args.step);
  for (int64_t block = begin; block < end; ++block) {
    float extra = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const BlockHeader header = load_header(first.headers + rank * stride, block);
      float of_rank[kSubBlocks];
      scales_of(header, of_rank);
      for (int64_t j = 0; j < kSubBlocks; ++j) {
        scales[static_cast<size_t>(j * ranks + rank)] = of_rank[j];
      }
      extra = rank == 0 ? extra_value(header) : extra + extra_value(header);
    }
    const uint8_t* bits = first.bits + block * kBlockBytes;
    float* momentum = momenta == nullptr ? nullptr : momenta + block * kBlock;
    const uint8_t* still = sink.still == nullptr ? nullptr : sink.still + block * kBlockBytes;
    const int64_t count = std::min(kBlock, elements - block * kBlock);
    code_block(sink, block, sink.residual, extra * share, [&](int64_t) {
      if (count == kBlock) {
        return AveragedSigns{bits, stride, scales.data(), ranks, share, momentum, still, factors};
      }
      padded.assign(static_cast<size_t>(ranks * kBlockBytes), 0);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        std::copy_n(bits + rank * stride, sign_bytes(count), padded.begin() + rank * kBlockBytes);
      }
      if (momentum != nullptr) {
        std::fill(std::copy_n(momentum, count, padded_momentum), padded_momentum + kBlock, 0.0f);
      }
      if (still != nullptr) {
        std::fill(std::copy_n(still, sign_bytes(count), padded_still), padded_still + kBlockBytes,
                  uint8_t{0});
      }
      return AveragedSigns{padded.data(),
                           kBlockBytes,
                           scales.data(),
                           ranks,
                           share,
                           momentum == nullptr ? nullptr : padded_momentum,
                           still == nullptr ? nullptr : padded_still,
                           factors};
    });
    if (momentum != nullptr && count < kBlock) std::copy_n(padded_momentum, count, momentum);
  }
}

template <bool kStill>
HWY_ATTR void decode_block(const uint8_t* bits, const float* scales, const uint8_t* still,
                           float* values) {
  const BitMasks masks;
  for (int64_t i = 0; i < kBlock; i += kGroup) {
    const Vector plus = hn::Set(F32(), scales[i / kSubBlockElements]), minus = hn::Neg(plus);
    const uint32_t word = load_word(bits, i), still_word = kStill ? load_word(still, i) : 0;
    for (int64_t k = 0; k < kVectors; ++k) {
      Vector value = hn::IfThenElse(masks.of(word, k), plus, minus);
      if (kStill) value = hn::IfThenZeroElse(masks.of(still_word, k), value);
      hn::StoreU(value, F32(), values + i + k * kLanes);
    }
  }
}

void decode_blocks(const Decode& args, int64_t begin, int64_t end) {
  const int64_t elements = args.elements;
  const Wire<const uint8_t> wire(args.chunk.data<uint8_t>(), elements);
  const uint8_t* all_still = args.still.data<uint8_t>();
  float* extras = args.extras.data<float>();
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * kBlock, count = std::min(kBlock, elements - first);
    const uint8_t* still = all_still == nullptr ? nullptr : all_still + first / 8;
    const BlockHeader header = load_header(wire.headers, block);
    if (extras != nullptr) extras[block] = extra_value(header);
    if (args.values.empty()) continue;
    float scales[kSubBlocks];
    scales_of(header, scales);
    float* to = args.values.data<float>() + (block - args.blocks.begin) * kBlock;
    if (count < kBlock) {
      PaddedBlock padded(to, still, count);
      std::copy_n(wire.bits + first / 8, sign_bytes(count), padded.bits);
      decode_block<true>(padded.bits, scales, padded.still, padded.residual);
      std::copy_n(padded.residual, count, to);
    } else if (still != nullptr && count_still(still, kBlockBytes) > 0) {
      decode_block<true>(wire.bits + first / 8, scales, still, to);
    } else {
      decode_block<false>(wire.bits + first / 8, scales, nullptr, to);
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

namespace cpu {
namespace {

// The minimum number of blocks per thread: 64 KiB of values.
constexpr int64_t kGrainBlocks = 8;

template <typename Args, typename Kernel>
void over_blocks(Context& context, const Args& args, const Kernel& kernel) {
  context.parallel_for(args.blocks.end - args.blocks.begin, kGrainBlocks,
                       [&](int64_t begin, int64_t end) {
                         kernel(args, args.blocks.begin + begin, args.blocks.begin + end);
                       });
}

}  // namespace

void encode(Context& context, const Encode& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(encode_blocks));
}

void average(Context& context, const Average& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(average_blocks));
}

void decode(Context& context, const Decode& args) {
  over_blocks(context, args, HWY_DYNAMIC_DISPATCH(decode_blocks));
}

}  // namespace cpu
}  // namespace onebit::compress
#endif
