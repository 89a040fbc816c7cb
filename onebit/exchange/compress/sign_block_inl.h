// The arithmetic of one full block of signs. Sums run over kGroup virtual lanes in a fixed order,
// without fused multiply-adds, so that every instruction set gives the same bits. Compiled once per
// instruction set (Highway's foreach_target), hence the unusual guard.

#if defined(ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#undef ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#else
#define ONEBIT_COMPRESS_SIGN_BLOCK_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/cache_control.h"
#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::compress::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::F32;
using kernels::HWY_NAMESPACE::U32;
using kernels::HWY_NAMESPACE::Vector;
using Mask = hn::Mask<F32>;

constexpr int64_t kBlock = kBlockElements;
constexpr int64_t kBlockBytes = kBlock / 8;
constexpr int64_t kSubBlockBytes = kSubBlockElements / 8;
// Elements processed together: one 32-bit word of signs.
constexpr int64_t kGroup = 32;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(F32()));
constexpr int64_t kVectors = kGroup / kLanes;

// The sums of a block that pass one computes.
struct Sums {
  float levels[kSubBlocks];  // of |c|
  float squares;             // of the values before the residual is added
};

// The sum of all lanes, by halving.
template <class D>
HWY_INLINE float fold(D, hn::Vec<D> lanes) {
#if HWY_TARGET != HWY_SCALAR  // its vectors have no halves
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return fold(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
#endif
  return hn::GetLane(lanes);
}

// One accumulator per virtual lane.
struct Accumulator {
  Vector parts[kVectors];

  HWY_INLINE Accumulator() {
    for (Vector& part : parts) part = hn::Zero(F32());
  }
  HWY_INLINE void add(int64_t k, Vector value) { parts[k] = hn::Add(parts[k], value); }
  HWY_INLINE float sum() const {
    Vector folded[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) folded[k] = parts[k];
    for (int64_t half = kVectors / 2; half >= 1; half /= 2) {
      for (int64_t k = 0; k < half; ++k) folded[k] = hn::Add(folded[k], folded[k + half]);
    }
    return fold(F32(), folded[0]);
  }
};

// Converts the bits of a word to vector masks.
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

// A source of the values in pass one: this rank's values.
struct GivenValues {
  const float* values;

  // The largest scale.
  static float most() { return std::numeric_limits<float>::max(); }
  HWY_INLINE void load(const BitMasks&, int64_t element, Vector* group) const {
    for (int64_t k = 0; k < kVectors; ++k) {
      group[k] = hn::LoadU(F32(), values + element + k * kLanes);
    }
  }
};

// MomentumStep in f32, as the loops use it.
struct MomentumFactors {
  explicit MomentumFactors(const MomentumStep& step)
      : beta(static_cast<float>(step.beta)),
        weight(static_cast<float>(step.weight)),
        lead(static_cast<float>(step.lead)),
        limit(static_cast<float>(step.limit)) {}

  float beta, weight, lead, limit;
};

// The other source: the average of the signs of all ranks, or the momentum computed from it, with
// its lead.
struct AveragedSigns {
  const uint8_t* bits;  // of rank 0, of rank r at bits + r * stride_bytes
  int64_t stride_bytes;
  const float* scales;  // [kSubBlocks, ranks]
  int64_t ranks;
  float share;           // 1 / ranks
  float* momentum;       // of the block, or null
  const uint8_t* still;  // of the block, or null
  MomentumFactors factors;

  float most() const { return factors.limit; }
  HWY_INLINE void load(const BitMasks& masks, int64_t element, Vector* group) const {
    const float* scale_of_rank = scales + element / kSubBlockElements * ranks;
    const auto signed_scale = [&](int64_t rank, int64_t k) HWY_ATTR {
      const Vector scale = hn::Set(F32(), scale_of_rank[rank]);
      const uint32_t word = load_word(bits + rank * stride_bytes, element);
      return hn::IfThenElse(masks.of(word, k), scale, hn::Neg(scale));
    };
    for (int64_t k = 0; k < kVectors; ++k) group[k] = signed_scale(0, k);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      for (int64_t k = 0; k < kVectors; ++k) group[k] = hn::Add(group[k], signed_scale(rank, k));
    }
    const Vector factor = hn::Set(F32(), share);
    for (int64_t k = 0; k < kVectors; ++k) group[k] = hn::Mul(group[k], factor);
    if (momentum != nullptr) move_momentum(masks, element, group);
  }

  HWY_INLINE void move_momentum(const BitMasks& masks, int64_t element, Vector* group) const {
    const uint32_t still_word = still == nullptr ? 0 : load_word(still, element);
    const Vector least = hn::Set(F32(), kMinLevel);
    const Vector most = hn::Set(F32(), factors.limit), fewest = hn::Neg(most);
    for (int64_t k = 0; k < kVectors; ++k) {
      float* at = momentum + element + k * kLanes;
      const Vector before = hn::LoadU(F32(), at);
      Vector moved = hn::Add(hn::Mul(hn::Set(F32(), factors.beta), before),
                             hn::Mul(hn::Set(F32(), factors.weight), group[k]));
      moved = hn::IfThenElseZero(hn::Ge(hn::Abs(moved), least), moved);
      moved = hn::Max(fewest, hn::Min(moved, most));
      const auto is_still = masks.of(still_word, k);
      hn::StoreU(hn::IfThenElse(is_still, before, moved), F32(), at);
      const Vector ahead =
          hn::Add(moved, hn::Mul(hn::Set(F32(), factors.lead), hn::Sub(moved, before)));
      group[k] = hn::IfThenElse(is_still, before, ahead);
    }
  }
};

// Pass one: c = value + residual into `compensated` [kBlock], 0 where still, and its sums.
template <bool kStill, typename Source>
HWY_ATTR Sums compensate(const Source& source, const float* residual, const uint8_t* still,
                         float* compensated) {
  const BitMasks masks;
  Sums sums;
  Accumulator squares;
  for (int64_t j = 0; j < kSubBlocks; ++j) {
    Accumulator level;
    const int64_t end = (j + 1) * kSubBlockElements;
    for (int64_t i = j * kSubBlockElements; i < end; i += kGroup) {
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
        level.add(k, hn::Abs(c));
        squares.add(k, hn::Mul(value, value));
      }
    }
    sums.levels[j] = level.sum();
  }
  sums.squares = squares.sum();
  return sums;
}

// Pass two: the signs of c, and the residual c - sign(c) * scale, 0 where still. scales
// [kSubBlocks]. Prefetches the memory of the next block meanwhile. Returns the sum of squares of
// the residual.
template <bool kStill>
HWY_ATTR float quantise(const float* compensated, const float* scales, const uint8_t* still,
                        float* residual, uint8_t* bits, const float* next_values) {
  const BitMasks masks;
  const Vector zero = hn::Zero(F32());
  Accumulator squares;
  for (int64_t i = 0; i < kBlock; i += kGroup) {
    const Vector plus = hn::Set(F32(), scales[i / kSubBlockElements]), minus = hn::Neg(plus);
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

}  // namespace onebit::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
