// The elements that dropout keeps. For element (row, column):
//   bits = philox(counter = {column / 8, site, low word of row_key, high word of row_key},
//                 key = philox_key(seed))
// are 8 lanes of 16 bits: lane = column % 8 is in word lane / 2, an even lane in its low half.
// The element is kept iff its lane >= threshold = round(probability * 65536), and is then scaled by
// 65536 / (65536 - threshold). One Philox call serves 8 columns.
#pragma once

#include <cstdint>

#include "onebit/base/philox.h"

namespace onebit::kernels {

inline constexpr uint32_t kDropoutLanes = 8;

// `probability` in [0, 1).
ONEBIT_HOST_DEVICE inline uint32_t dropout_threshold(float probability) {
  // Exact in f64, so that this rounds to nearest, on devices too.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  const uint32_t threshold = static_cast<uint32_t>(double{probability} * 65536.0 + 0.5);
  return threshold < 65535u ? threshold : 65535u;
}

ONEBIT_HOST_DEVICE inline float dropout_scale(uint32_t threshold) {
  return 65536.0f / static_cast<float>(65536u - threshold);
}

// The 8 lanes of columns [8 * column_block, 8 * column_block + 8).
ONEBIT_HOST_DEVICE inline PhiloxCounter dropout_bits(uint64_t seed, uint32_t site, uint64_t row_key,
                                                     uint32_t column_block) {
  return philox(
      {{column_block, site, static_cast<uint32_t>(row_key), static_cast<uint32_t>(row_key >> 32)}},
      philox_key(seed));
}

// Bit i: whether column 8 * column_block + i is kept. `key` is philox_key(seed).
ONEBIT_HOST_DEVICE inline uint32_t dropout_keep_bits(PhiloxKey key, uint32_t site, uint64_t row_key,
                                                     uint32_t column_block, uint32_t threshold) {
  const PhiloxCounter bits = philox(
      {{column_block, site, static_cast<uint32_t>(row_key), static_cast<uint32_t>(row_key >> 32)}},
      key);
  // Compared in the upper half of a word, where the lower one makes no difference.
  const uint32_t upper = threshold << 16;
  uint32_t kept = 0;
  for (uint32_t word = 0; word < 4; ++word) {
    kept |= static_cast<uint32_t>(bits.word[word] << 16 >= upper) << (2 * word);
    kept |= static_cast<uint32_t>(bits.word[word] >= upper) << (2 * word + 1);
  }
  return kept;
}

ONEBIT_HOST_DEVICE inline bool dropout_keeps(uint64_t seed, uint32_t site, uint64_t row_key,
                                             uint32_t column, uint32_t threshold) {
  const PhiloxCounter bits = dropout_bits(seed, site, row_key, column / kDropoutLanes);
  const uint32_t lane = column % kDropoutLanes;
  return ((bits.word[lane / 2] >> (16 * (lane % 2))) & 0xFFFFu) >= threshold;
}

}  // namespace onebit::kernels
