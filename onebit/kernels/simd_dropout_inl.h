// Vectorized dropout masks (dropout_mask.h): one Philox counter per 32-bit lane.

#if defined(ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#undef ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#else
#define ONEBIT_KERNELS_SIMD_DROPOUT_INL_H_
#endif

#include "onebit/kernels/dropout_plan.h"
#include "onebit/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// The 16-bit lanes of `columns` columns from column 8 * first_block on, in column order. `bits` has
// space for dropout_bits_elements(columns).
inline HWY_NOINLINE void draw_dropout_bits(const DropoutPlan& plan, uint64_t row_key,
                                           uint32_t first_block, int64_t columns, uint16_t* bits) {
  for (int64_t column = 0; column < columns; column += kDropoutLanes) {
    const PhiloxCounter drawn =
        dropout_bits(plan.round_keys, plan.site, row_key,
                     first_block + static_cast<uint32_t>(column / kDropoutLanes));
    for (uint32_t lane = 0; lane < kDropoutLanes; ++lane) {
      bits[column + lane] = static_cast<uint16_t>(drawn.word[lane / 2] >> (16 * (lane % 2)));
    }
  }
}

#else

// Counters are in the low halves of 64-bit lanes, where one multiplication gives both halves of the
// product; the high halves contain garbage that the multiplication ignores.
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
};

// As above.
inline HWY_NOINLINE void draw_dropout_bits(const DropoutPlan& plan, uint64_t row_key,
                                           uint32_t first_block, int64_t columns, uint16_t* bits) {
  const U32 words;
  const hn::RepartitionToWide<U32> wide;
  const int64_t lanes = lane_count();
  const auto low_key = hn::Set(words, static_cast<uint32_t>(row_key));
  const auto high_key = hn::Set(words, static_cast<uint32_t>(row_key >> 32));
  const auto site = hn::Set(words, plan.site);
  for (int64_t block = 0; block * 8 < columns; block += lanes) {
    const auto counter = hn::Iota(words, first_block + static_cast<uint32_t>(block));
    PhiloxLanes even = {{counter, site, low_key, high_key}};
    PhiloxLanes odd = {{PhiloxLanes::high(counter), site, low_key, high_key}};
    for (const PhiloxKey& key : plan.round_keys.of) {
      even.round(key);
      odd.round(key);
    }
    PhiloxLanes::Words merged[4];
    for (int i = 0; i < 4; ++i) {
      const auto shifted = hn::ShiftLeft<32>(hn::BitCast(wide, odd.word[i]));
      merged[i] = hn::OddEven(hn::BitCast(words, shifted), even.word[i]);
    }
    HWY_ALIGN uint32_t column_order[4 * hn::MaxLanes(words)];
    hn::StoreInterleaved4(merged[0], merged[1], merged[2], merged[3], words, column_order);
    std::memcpy(bits + block * 8, column_order, static_cast<size_t>(lanes) * 16);
  }
}

#endif

// 0 for dropped elements, the scale for kept ones; reads whole vectors of `bits`.
HWY_INLINE Vector dropout_factor(const DropoutPlan& plan, const uint16_t* bits) {
  const auto lanes = hn::PromoteTo(I32(), hn::LoadU(U16(), bits));
  const auto dropped = hn::Lt(lanes, hn::Set(I32(), static_cast<int32_t>(plan.threshold)));
  return hn::IfThenZeroElse(hn::RebindMask(F32(), dropped), set(plan.scale));
}

// The value after dropout. If dropout is off, the threshold is 0 and the scale 1, so any bits give
// the value itself.
HWY_INLINE Vector dropped(Vector value, const DropoutPlan& plan, const uint16_t* bits) {
  return hn::Mul(value, dropout_factor(plan, bits));
}

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
