// The elements that dropout keeps. One Philox call serves 16 columns:
//   words = philox(counter = {column / 16, site, low word of row_key, high word of row_key},
//                  key = philox_key(seed), rounds = 7)
//   bit b of byte(column) = bit column % 16 of half-word b: words[b / 2], its low half if b is even
//   number(column) = 256 byte(column) + byte(column ^ 8) with its bits in reverse order
// The element is kept iff number(column) >= threshold = round(probability * 65536), and is then
// scaled by 65536 / (65536 - threshold). Seven is the smallest number of rounds that passes all
// tests of BigCrush (Salmon et al., SC 2011, table 2).
//
// Bits of one rank lie side by side, so numbers are compared with the threshold 16 or 32 at a time,
// by one logical operation a bit, and the decisions need not be packed. A column decides by eight
// bits of its own. Its partner's bits matter in one case of 256, where the eight are equal to the
// threshold's. They are reversed, for else a partner whose byte is small enough to drop such a
// column would mostly be dropped, too: the decisions of partners would correlate by 0.0035 at a
// probability of 0.1. It is 0.0004 as it is, and larger only below 1/256, where whole bytes tie.
#pragma once

#include <cstdint>

#include "onebit/ground/base/philox.h"
#include "onebit/math/kernels/dropout.h"

namespace onebit::kernels {

inline constexpr uint32_t kDropoutLanes = 16;  // columns of one Philox call
inline constexpr int kDropoutRounds = 7;

// The columns of attention's probabilities: key k of head h is column 65536 h + k.
ONEBIT_HOST_DEVICE inline uint32_t first_score_block(uint32_t head) {
  return head * (65536u / kDropoutLanes);
}

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

// The threshold as kept_lanes() compares with it.
struct DropoutComparison {
  uint32_t is_zero[16];  // all ones where that bit of the threshold is 0
};
ONEBIT_HOST_DEVICE inline DropoutComparison dropout_comparison(uint32_t threshold) {
  DropoutComparison comparison{};
  for (int bit = 0; bit < 16; ++bit) comparison.is_zero[bit] = (threshold >> bit & 1u) - 1u;
  return comparison;
}

// Done in every round, where the first one uses the key itself.
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

// The words of columns [16 * block, 16 * block + 16).
ONEBIT_HOST_DEVICE inline PhiloxCounter dropout_words(const DropoutKeys& keys, uint32_t site,
                                                      uint64_t row_key, uint32_t block) {
  PhiloxCounter words{
      {block, site, static_cast<uint32_t>(row_key), static_cast<uint32_t>(row_key >> 32)}};
  for (const PhiloxKey& key : keys.of) words = philox_round(words, key);
  return words;
}

// Done for each bit, in one instruction on a GPU.
ONEBIT_HOST_DEVICE inline uint32_t majority(uint32_t a, uint32_t b, uint32_t c) {
  return (a & b) | (c & (a | b));
}
// Four of the bytes of `low` (0 to 3) and `high` (4 to 7). The lowest digit of `order` is the
// number of the lowest byte.
ONEBIT_HOST_DEVICE inline uint32_t bytes_of(uint32_t low, uint32_t high, uint32_t order) {
#ifdef __CUDA_ARCH__
  return __byte_perm(low, high, order);
#else
  const uint64_t both = uint64_t{high} << 32 | low;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(both >> (8 * (order >> 4 * i & 7u)) & 0xFFu) << 8 * i;
  }
  return result;
#endif
}

// Half-words, or half-words of two calls side by side, and the same with lanes i, i ^ 8 exchanged.
struct DropoutLanes {
  uint32_t own[8], partners[8];
};
// Bit i of the result: whether lane i is kept.
ONEBIT_HOST_DEVICE inline uint32_t kept_lanes(const DropoutLanes& lanes,
                                              const DropoutComparison& threshold) {
  // Says of the bits compared so far, from the lowest up, whether number >= threshold. Where the
  // next bit of the threshold is 1, the number's bit must be 1, too. Where it is 0, it suffices.
  uint32_t kept = ~0u;
  for (int bit = 0; bit < 8; ++bit) {
    kept = majority(lanes.partners[7 - bit], kept, threshold.is_zero[bit]);
  }
  for (int bit = 0; bit < 8; ++bit) {
    kept = majority(lanes.own[bit], kept, threshold.is_zero[8 + bit]);
  }
  return kept;
}

// Bit i: whether column 16 * block + i is kept.
ONEBIT_HOST_DEVICE inline uint32_t dropout_kept_16(const DropoutKeys& keys, uint32_t site,
                                                   uint64_t row_key, uint32_t block,
                                                   const DropoutComparison& threshold) {
  const PhiloxCounter words = dropout_words(keys, site, row_key, block);
  DropoutLanes lanes;
  for (int i = 0; i < 4; ++i) {
    const uint32_t word = words.word[i];
    lanes.own[2 * i] = word;
    lanes.own[2 * i + 1] = word >> 16;
    lanes.partners[2 * i] = bytes_of(word, word, 0x3201);
    lanes.partners[2 * i + 1] = bytes_of(word, word, 0x0123);
  }
  return kept_lanes(lanes, threshold) & 0xFFFFu;
}

// As above, of 32 columns.
ONEBIT_HOST_DEVICE inline uint32_t dropout_kept_32(const DropoutKeys& keys, uint32_t site,
                                                   uint64_t row_key, uint32_t block,
                                                   const DropoutComparison& threshold) {
  const PhiloxCounter first = dropout_words(keys, site, row_key, block);
  const PhiloxCounter second = dropout_words(keys, site, row_key, block + 1);
  DropoutLanes lanes;
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = first.word[i], high = second.word[i];
    lanes.own[2 * i] = bytes_of(low, high, 0x5410);
    lanes.own[2 * i + 1] = bytes_of(low, high, 0x7632);
    lanes.partners[2 * i] = bytes_of(low, high, 0x4501);
    lanes.partners[2 * i + 1] = bytes_of(low, high, 0x6723);
  }
  return kept_lanes(lanes, threshold);
}

// By the rule above, for one column.
inline bool dropout_keeps(const DropoutKeys& keys, uint32_t site, uint64_t row_key, uint32_t column,
                          uint32_t threshold) {
  const PhiloxCounter words = dropout_words(keys, site, row_key, column / kDropoutLanes);
  const auto bit_of = [&](uint32_t lane, int bit) {
    return words.word[bit / 2] >> (lane + 16 * static_cast<uint32_t>(bit % 2)) & 1u;
  };
  const uint32_t lane = column % kDropoutLanes;
  uint32_t number = 0;
  for (int bit = 0; bit < 8; ++bit) {
    number |= bit_of(lane, bit) << (8 + bit) | bit_of(lane ^ 8u, bit) << (7 - bit);
  }
  return number >= threshold;
}

// A Dropout prepared for a loop.
struct DropoutPlan {
  explicit DropoutPlan(const Dropout& dropout)
      : threshold(dropout_threshold(dropout.probability)),
        comparison(dropout_comparison(threshold)),
        scale(dropout_scale(threshold)),
        round_keys(dropout_keys(dropout.seed)),
        site(dropout.site),
        row_keys(threshold > 0 ? dropout.row_keys.data<uint64_t>() : nullptr) {}

  bool active() const { return threshold > 0; }

  uint32_t threshold;
  DropoutComparison comparison;
  float scale;
  DropoutKeys round_keys;
  uint32_t site;
  const uint64_t* row_keys;
};

// The number of 16-bit words that take a bit for each of `columns` columns: what the widest vectors
// write, and what they read behind it.
inline int64_t dropout_bits_elements(int64_t columns) {
  constexpr int64_t kWidest = 16, kRead = 4;
  return (columns + kWidest * kDropoutLanes - 1) / (kWidest * kDropoutLanes) * kWidest + kRead;
}

}  // namespace onebit::kernels
