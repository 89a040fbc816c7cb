// Vectorized dropout masks (dropout_mask.h): one Philox counter per 32-bit lane.

#if defined(ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#undef ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#else
#define ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#endif

#include <algorithm>

#include "onebit/math/kernels/dropout_mask.h"
#include "onebit/math/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Bits [0, columns) of `bits`: whether `row` keeps the column, counted from 16 * first_block on, or
// all ones without dropout. `bits` has space for dropout_bits_elements(columns).
inline HWY_NOINLINE void draw_dropout_bits(const DropoutPlan& plan, int64_t row,
                                           uint32_t first_block, int64_t columns, uint16_t* bits) {
  for (int64_t block = 0; block * kDropoutLanes < columns; ++block) {
    bits[block] = plan.active() ? static_cast<uint16_t>(dropout_kept_16(
                                      plan.round_keys, plan.site, plan.row_keys[row],
                                      first_block + static_cast<uint32_t>(block), plan.comparison))
                                : 0xFFFF;
  }
}

#else

// Counters are in the low halves of 64-bit lanes, where one multiplication gives both halves of the
// product. The high halves contain garbage that the multiplication ignores.
struct PhiloxLanes {
  using Words = hn::Vec<U32>;
  Words word[4];

  static HWY_INLINE Words low_times(Words value, uint32_t multiplier) {
    return hn::BitCast(U32(), hn::MulEven(value, hn::Set(U32(), multiplier)));
  }
  static HWY_INLINE Words high(Words product) {
    const hn::RepartitionToWide<U32> wide;
    return hn::BitCast(U32(), hn::ShiftRight<32>(hn::BitCast(wide, product)));
  }

  HWY_INLINE void round(PhiloxKey key) {
    const Words product0 = low_times(word[0], kPhiloxMultiplier0);
    const Words product1 = low_times(word[2], kPhiloxMultiplier1);
    // The products are computed last, since the next round waits for them.
    word[0] = hn::Xor(hn::Xor(word[1], hn::Set(U32(), key.word[0])), high(product1));
    word[1] = product1;
    word[2] = hn::Xor(hn::Xor(word[3], hn::Set(U32(), key.word[1])), high(product0));
    word[3] = product0;
  }
  // Lane i: word `i` of the calls with even counters in `even`, of the others in `odd`.
  static HWY_INLINE Words merged(Words even, Words odd) {
    const hn::RepartitionToWide<U32> wide;
    return hn::OddEven(hn::BitCast(U32(), hn::ShiftLeft<32>(hn::BitCast(wide, odd))), even);
  }
};

// kept_lanes() (dropout_mask.h) in the low halves of the lanes, one Philox call each.
HWY_INLINE hn::Vec<U32> kept_lanes(const hn::Vec<U32> (&words)[4],
                                   const DropoutComparison& threshold) {
  const U32 lanes;
  const hn::Repartition<uint16_t, U32> halves;
  auto kept = hn::Set(lanes, 0xFFFFu);
  const auto compare = [&](auto half_words, int bit) HWY_ATTR {
    const auto is_zero = hn::Set(lanes, threshold.is_zero[bit]);
    kept = hn::Or(hn::And(half_words, kept), hn::And(is_zero, hn::Or(half_words, kept)));
  };
  for (int i = 3; i >= 0; --i) {
    const auto own = hn::BitCast(halves, words[i]);
    const auto partners = hn::BitCast(lanes, hn::Or(hn::ShiftLeft<8>(own), hn::ShiftRight<8>(own)));
    compare(hn::ShiftRight<16>(partners), 6 - 2 * i);
    compare(partners, 7 - 2 * i);
  }
  for (int i = 0; i < 4; ++i) {
    compare(words[i], 8 + 2 * i);
    compare(hn::ShiftRight<16>(words[i]), 9 + 2 * i);
  }
  return hn::And(kept, hn::Set(lanes, 0xFFFFu));
}

// As above.
inline HWY_NOINLINE void draw_dropout_bits(const DropoutPlan& plan, int64_t row,
                                           uint32_t first_block, int64_t columns, uint16_t* bits) {
  const U32 lanes;
  const int64_t words = (columns + kDropoutLanes - 1) / kDropoutLanes;
  if (!plan.active()) {
    std::fill(bits, bits + words, uint16_t{0xFFFF});
    return;
  }
  const uint64_t row_key = plan.row_keys[row];
  const auto low_key = hn::Set(lanes, static_cast<uint32_t>(row_key));
  const auto high_key = hn::Set(lanes, static_cast<uint32_t>(row_key >> 32));
  const auto site = hn::Set(lanes, plan.site);
  for (int64_t block = 0; block < words; block += lane_count()) {
    const auto counter = hn::Iota(lanes, first_block + static_cast<uint32_t>(block));
    PhiloxLanes even = {{counter, site, low_key, high_key}};
    PhiloxLanes odd = {{PhiloxLanes::high(counter), site, low_key, high_key}};
    for (const PhiloxKey& key : plan.round_keys.of) {
      even.round(key);
      odd.round(key);
    }
    PhiloxLanes::Words drawn[4];
    for (int i = 0; i < 4; ++i) drawn[i] = PhiloxLanes::merged(even.word[i], odd.word[i]);
    hn::StoreU(hn::TruncateTo(U16(), kept_lanes(drawn, plan.comparison)), U16(), bits + block);
  }
}

#endif

// 0 for dropped elements, the scale for kept ones, from `column` of the row's bits on, which is a
// multiple of the vector's lanes.
HWY_INLINE Vector dropout_factor(const DropoutPlan& plan, const uint16_t* bits, int64_t column) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(bits) + column / 8;
  uint8_t shifted[8] = {};
  if (lane_count() < 8) {
    shifted[0] = static_cast<uint8_t>(*bytes >> (column % 8));
    bytes = shifted;
  }
  return hn::IfThenElseZero(hn::LoadMaskBits(F32(), bytes), set(plan.scale));
}

// The value after dropout. If dropout is off, the scale is 1 and all bits are set.
HWY_INLINE Vector dropped(Vector value, const DropoutPlan& plan, const uint16_t* bits,
                          int64_t column) {
  return hn::Mul(value, dropout_factor(plan, bits, column));
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
