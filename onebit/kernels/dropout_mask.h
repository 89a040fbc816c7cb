// The elements that dropout keeps. For element (row, column):
//   bits = philox(counter = {column / 8, site, low word of row_key, high word of row_key},
//                 key = philox_key(seed), rounds = 7)
// are 8 lanes of 16 bits: lane = column % 8 is in word lane / 2, an even lane in its low half.
// The element is kept iff its lane >= threshold = round(probability * 65536), and is then scaled by
// 65536 / (65536 - threshold). One Philox call serves 8 columns. Seven is the smallest number of
// rounds that passes all tests of BigCrush (Salmon et al., SC 2011, table 2).
#pragma once

#include <cstdint>

#include "onebit/base/philox.h"

namespace onebit::kernels {

inline constexpr uint32_t kDropoutLanes = 8;
inline constexpr int kDropoutRounds = 7;

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

// Of every round; the first is the key itself.
struct DropoutKeys {
  PhiloxKey of[kDropoutRounds];
};
ONEBIT_HOST_DEVICE inline DropoutKeys dropout_keys(uint64_t seed) {
  DropoutKeys keys{};
  PhiloxKey key = philox_key(seed);
  for (PhiloxKey& one : keys.of) {
    one = key;
    key = next_round_key(key);
  }
  return keys;
}

// The 8 lanes of columns [8 * column_block, 8 * column_block + 8).
ONEBIT_HOST_DEVICE inline PhiloxCounter dropout_bits(const DropoutKeys& keys, uint32_t site,
                                                     uint64_t row_key, uint32_t column_block) {
  PhiloxCounter bits{
      {column_block, site, static_cast<uint32_t>(row_key), static_cast<uint32_t>(row_key >> 32)}};
  for (const PhiloxKey& key : keys.of) bits = philox_round(bits, key);
  return bits;
}

// Bit i: whether column 8 * column_block + i is kept.
ONEBIT_HOST_DEVICE inline uint32_t dropout_keep_bits(const DropoutKeys& keys, uint32_t site,
                                                     uint64_t row_key, uint32_t column_block,
                                                     uint32_t threshold) {
  const PhiloxCounter bits = dropout_bits(keys, site, row_key, column_block);
  // Compared in the upper half of a word, where the lower one makes no difference.
  const uint32_t upper = threshold << 16;
  uint32_t kept = 0;
  for (uint32_t word = 0; word < 4; ++word) {
    kept |= static_cast<uint32_t>(bits.word[word] << 16 >= upper) << (2 * word);
    kept |= static_cast<uint32_t>(bits.word[word] >= upper) << (2 * word + 1);
  }
  return kept;
}

ONEBIT_HOST_DEVICE inline bool dropout_keeps(const DropoutKeys& keys, uint32_t site,
                                             uint64_t row_key, uint32_t column,
                                             uint32_t threshold) {
  const PhiloxCounter bits = dropout_bits(keys, site, row_key, column / kDropoutLanes);
  const uint32_t lane = column % kDropoutLanes;
  return ((bits.word[lane / 2] >> (16 * (lane % 2))) & 0xFFFFu) >= threshold;
}

}  // namespace onebit::kernels
