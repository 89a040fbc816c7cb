// The arithmetic of one whole block of signs. Sums run over kGroup virtual lanes in a fixed order,
// without fused multiply-adds, so that every instruction set gives the same bits. Compiled once for
// every instruction set (Highway's foreach_target), hence the unusual guard.

#if defined(ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#undef ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#else
#define ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "onebit/compress/sign_codec.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::compress::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using Vector = hn::Vec<F32>;
using Mask = hn::Mask<F32>;

constexpr int64_t kBlock = kBlockElements;
constexpr int64_t kBlockBytes = kBlock / 8;
// Elements handled together: one 32-bit word of signs.
constexpr int64_t kGroup = 32;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(F32()));
constexpr int64_t kVectors = kGroup / kLanes;

// What pass one finds in a block.
struct Sums {
  float level = 0;    // of |c|, or of c^2
  float squares = 0;  // of the values before the residual is added
};

// One accumulator for every virtual lane.
struct Accumulator {
  Vector parts[kVectors];

  HWY_INLINE Accumulator() {
    for (int64_t k = 0; k < kVectors; ++k) parts[k] = hn::Zero(F32());
  }
  HWY_INLINE void add(int64_t k, Vector value) { parts[k] = hn::Add(parts[k], value); }
  HWY_INLINE float sum() const {
    HWY_ALIGN float lanes[kGroup];
    for (int64_t k = 0; k < kVectors; ++k) hn::Store(parts[k], F32(), lanes + k * kLanes);
    for (int64_t half = kGroup / 2; half >= 1; half /= 2) {
      for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }
};

// Turns bits of a word into masks of vectors.
struct BitMasks {
  hn::Vec<U32> bit[kVectors];

  HWY_INLINE BitMasks() {
    for (int64_t k = 0; k < kVectors; ++k) {
      bit[k] = hn::Shl(hn::Set(U32(), 1u), hn::Iota(U32(), static_cast<uint32_t>(k * kLanes)));
    }
  }
  HWY_INLINE Mask of(uint32_t word, int64_t k) const {
    return hn::RebindMask(F32(), hn::TestBit(hn::Set(U32(), word), bit[k]));
  }
};

HWY_INLINE uint32_t load_word(const uint8_t* bits, int64_t element) {
  uint32_t word;
  std::memcpy(&word, bits + element / 8, sizeof word);
  return word;
}

HWY_INLINE uint32_t word_of(Mask mask, int64_t k) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(F32(), mask, bytes);
  return (uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8) << (k * kLanes);
}

template <ScaleKind kScale>
HWY_INLINE Vector level_of(Vector value) {
  return kScale == ScaleKind::kMeanAbsolute ? hn::Abs(value) : hn::Mul(value, value);
}

// Where pass one takes the values of a group from: this rank's numbers.
struct GivenValues {
  const float* values;

  HWY_INLINE void load(const BitMasks&, int64_t element, Vector* group) const {
    for (int64_t k = 0; k < kVectors; ++k) {
      group[k] = hn::LoadU(F32(), values + element + k * kLanes);
    }
  }
};

// Or the average of the signs of all ranks.
struct AveragedSigns {
  const uint8_t* bits;  // of rank 0; of rank r at bits + r * stride_bytes
  int64_t stride_bytes;
  const float* scales;  // [ranks]
  int64_t ranks;
  float share;  // 1 / ranks

  HWY_INLINE void load(const BitMasks& masks, int64_t element, Vector* group) const {
    const auto signed_scale = [&](int64_t rank, int64_t k) HWY_ATTR {
      const Vector scale = hn::Set(F32(), scales[rank]);
      const uint32_t word = load_word(bits + rank * stride_bytes, element);
      return hn::IfThenElse(masks.of(word, k), scale, hn::Neg(scale));
    };
    for (int64_t k = 0; k < kVectors; ++k) group[k] = signed_scale(0, k);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      for (int64_t k = 0; k < kVectors; ++k) group[k] = hn::Add(group[k], signed_scale(rank, k));
    }
    const Vector factor = hn::Set(F32(), share);
    for (int64_t k = 0; k < kVectors; ++k) group[k] = hn::Mul(group[k], factor);
  }
};

// Pass one: c = value + residual into `compensated` [kBlock], 0 where still, and its sums.
template <ScaleKind kScale, bool kStill, typename Source>
HWY_ATTR Sums compensate(const Source& source, const float* residual, const uint8_t* still,
                         float* compensated) {
  const BitMasks masks;
  Accumulator level, squares;
  for (int64_t i = 0; i < kBlock; i += kGroup) {
    const uint32_t still_word = kStill ? load_word(still, i) : 0;
    Vector group[kVectors];
    source.load(masks, i, group);
    for (int64_t k = 0; k < kVectors; ++k) {
      Vector value = group[k];
      Vector c = hn::Add(value, hn::LoadU(F32(), residual + i + k * kLanes));
      if (kStill) {
        value = hn::IfThenZeroElse(masks.of(still_word, k), value);
        c = hn::IfThenZeroElse(masks.of(still_word, k), c);
      }
      hn::Store(c, F32(), compensated + i + k * kLanes);
      level.add(k, level_of<kScale>(c));
      squares.add(k, hn::Mul(value, value));
    }
  }
  // Squares may overflow: an infinite scale would end in values that are not numbers.
  return {std::min(level.sum(), std::numeric_limits<float>::max()), squares.sum()};
}

// Pass two: the signs of c, and the residual c - sign(c) * scale, 0 where still. Fetches the memory
// the next block will need meanwhile. Returns the sum of squares of the residual.
template <bool kStill>
HWY_ATTR float quantise(const float* compensated, float scale, const uint8_t* still,
                        float* residual, uint8_t* bits, const float* next_values) {
  const BitMasks masks;
  const Vector plus = hn::Set(F32(), scale), minus = hn::Neg(plus), zero = hn::Zero(F32());
  Accumulator squares;
  for (int64_t i = 0; i < kBlock; i += kGroup) {
    const uint32_t still_word = kStill ? load_word(still, i) : 0;
    uint32_t word = 0;
    hwy::Prefetch(residual + kBlock + i);
    hwy::Prefetch(residual + kBlock + i + 16);
    hwy::Prefetch(next_values + i);
    hwy::Prefetch(next_values + i + 16);
    for (int64_t k = 0; k < kVectors; ++k) {
      const Vector c = hn::Load(F32(), compensated + i + k * kLanes);
      const Mask positive = hn::Ge(c, zero);
      Vector left = hn::Sub(c, hn::IfThenElse(positive, plus, minus));
      if (kStill) left = hn::IfThenZeroElse(masks.of(still_word, k), left);
      hn::StoreU(left, F32(), residual + i + k * kLanes);
      squares.add(k, hn::Mul(left, left));
      word |= word_of(positive, k);
    }
    std::memcpy(bits + i / 8, &word, sizeof word);
  }
  return squares.sum();
}

template <bool kStill>
HWY_ATTR void decode_block(const uint8_t* bits, float scale, const uint8_t* still, float* values) {
  const BitMasks masks;
  const Vector plus = hn::Set(F32(), scale), minus = hn::Neg(plus);
  for (int64_t i = 0; i < kBlock; i += kGroup) {
    const uint32_t word = load_word(bits, i), still_word = kStill ? load_word(still, i) : 0;
    for (int64_t k = 0; k < kVectors; ++k) {
      Vector value = hn::IfThenElse(masks.of(word, k), plus, minus);
      if (kStill) value = hn::IfThenZeroElse(masks.of(still_word, k), value);
      hn::StoreU(value, F32(), values + i + k * kLanes);
    }
  }
}

}  // namespace onebit::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
