// The passes of 1-bit Adam before and after its compressed exchange, over flat buffers cut into the
// blocks and sub-blocks of kernels/blocks.h (docs/compression.md has the algorithm). Ranks exchange
// the normalized gradient g / d with d = sqrt(variance) + epsilon, each rank's own. The momentum is
// computed from its average. Entries whose variance is exactly 0 are still entries. A bitmap is u8
// [ceil(elements / 8)], element i in bit i % 8 (least significant first) of byte i / 8.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "onebit/ground/base/philox.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/tensor/view.h"

namespace onebit::updates {

using kernels::UpdateRange;

// The switch at the end of the warm-up, with d = sqrt(variance_factor variance) + epsilon.
// Entries whose variance is 0 become still: their momentum is 0 too.
struct OnebitFreeze {
  View momentum;  // f32 [elements]  in: momentum, out: momentum / d
  View variance;  // f32 [elements]  in: variance, out: variance_factor variance, at least
                  // kSmallestVariance, or 0 where still
  View still;     // bitmap  overwritten
  double epsilon = 1e-8, variance_factor = 1;
};
void onebit_freeze(Context&, const OnebitFreeze&);

// A sub-block whose sum of squared gradients is larger counts as infinite, and so does a gradient
// whose square is larger. No number that is sent exceeds it or grows by more in one update.
inline constexpr double kLargestFinite = 1e30;
// The smallest variance of an entry that moves: 0 marks a still entry.
inline constexpr float kSmallestVariance = 1.17549435e-38f;

// A gradient is a spike if its square is more than 1 / (1 - beta2) times as large as expected, the
// number of updates that the variance remembers, and more than kLeastSpike times. What the spikes
// of an update add to the variance of their sub-block is at most kSpikeShare of it, so that the
// entries beside them go on as before. If more than half of the entries that move have one, it is
// growth and counts in full.
inline constexpr double kLeastSpike = 100, kSpikeShare = 0.2;

// The turn of an update after which no extra is sent.
inline constexpr int64_t kNoTurn = -1;

enum BlockFlag : uint8_t {
  kBlockNotFinite = 1,   // a gradient was infinite or NaN, or too large for its variance
  kBlockStillMoved = 2,  // a still entry has a gradient
};

// Before the exchange, for the blocks of [begin, end) (begin at a block, end at a block or the end
// of the buffer), with g = gradient_scale * gradient (+ weight_decay * value, only if `ranges` are
// given). A single rank (`alone`), as Adam:
//   variance = beta2 variance + (1 - beta2) g^2,   normalized = g / d
// Several ranks: the shape of the variance within a sub-block follows this rank's own gradients,
// its sum is unchanged (onebit_momentum changes it, equally on all ranks). With S the sum of the
// variance over the sub-block and Q the sum of g^2, a = (1 - beta2) own_weight / ratio:
//   v = variance + a g^2,   normalized = g / (sqrt(v) + epsilon),   variance = v S / (S + a Q)
// where Q, and v in the last formula, have the squares of spikes as far as kSpikeShare allows. The
// energy so far (below) may say that the sum of the variance will more than double when the energy
// of all ranks arrives. Then the first v has (growth - 1) variance instead of variance. The numbers
// that are sent with the gradient are accumulated:
//   energy += Q / (ratio S)                   per sub-block: the size of g^2 relative to variance
//   sketch += (sum of +-g) / sqrt(sum of S)   per block: signs that ranks share, see noise_signs
//   block_energy += (sum of Q) / (sum of S)
// `extra` receives one of them, which is reset to 0: the energy of sub-block `turn` over its
// energy_updates, or the sketch if `turn` is kSubBlocks, and none if it is kNoTurn. If the gradient
// of a block is not finite it is taken as zero: normalized is 0, nothing else of the block changes.
struct OnebitNormalize {
  ConstView gradient;                   // f32 [elements]
  ConstView value;                      // f32 [elements], read only with ranges
  std::span<const UpdateRange> ranges;  // from 0 to elements, or empty: no decay in the gradient
  View variance;                        // f32 [elements]  updated
  View normalized;                      // f32 [end - begin]  overwritten (0 where still)
  View extra;                           // f32 [blocks of the range]  overwritten, except at kNoTurn
  ConstView own_weight;                 // f32 [sub-blocks]  own share of the shape, 0 to 1
  ConstView block_ratio;  // f32 [blocks]  g^2 of one rank over the average's square, 1 to ranks
  View energy;            // f32 [sub-blocks]  added to
  View sketch;            // f32 [blocks]  added to
  View block_energy;      // f32 [blocks]  added to
  View block_variance;    // f32 [blocks]  overwritten: the sum of the variance
  View block_square;      // f64 [blocks]  overwritten: the sum of g^2
  View block_flags;       // u8 [blocks]  overwritten
  int64_t begin = 0, end = 0;
  double gradient_scale = 1, beta2 = 0.999, epsilon = 1e-8;
  int64_t turn = 0;
  // Per sub-block of a block: the number of updates in its energy, this one included.
  std::array<int64_t, kernels::kSubBlocks> energy_updates{1, 1, 1, 1, 1, 1, 1, 1};
  uint64_t sketch_key = 0;  // the same on all ranks, different in every step
  // Added to an element's number to obtain its signs in the sketch, if the buffers are a share of
  // the flat buffer. A multiple of kBlockElements.
  int64_t sketch_shift = 0;
  bool alone = false;  // a single rank: extra to block_variance are not used
};
void onebit_normalize(Context&, const OnebitNormalize&);

// Signs of the sketch for elements [32 group, 32 group + 32): bit i is 1 for minus. Two
// multiplications suffice: signs only have to be balanced and pairwise independent.
ONEBIT_HOST_DEVICE inline uint32_t noise_signs(uint64_t key, uint64_t group) {
  uint64_t x = (key ^ group * 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
  return static_cast<uint32_t>(x >> 32);
}

// After the exchange of [begin, end). With `normalized` (on a single rank, since several ranks keep
// their momentum where the average is computed, compress/sign_codec.h):
//   momentum = beta1 momentum + (1 - beta1) normalized, clamped to [-limit, limit]
// and with `extra`, unless `turn` is kSubBlocks, the variance of sub-block `turn` of every
// block is multiplied by turn_memory + (1 - turn_memory) extra, with the energy as averaged over
// ranks.
struct OnebitMomentum {
  View momentum;         // f32 [elements]  updated (may be empty without `normalized`)
  View variance;         // f32 [elements]  updated
  ConstView normalized;  // f32 [end - begin] (empty: the momentum is unchanged)
  ConstView extra;       // f32 [blocks of the range] (empty: the variance is unchanged)
  int64_t begin = 0, end = 0;
  double beta1 = 0.9, turn_memory = 1, limit = std::numeric_limits<float>::max();
  int64_t turn = 0;
};
void onebit_momentum(Context&, const OnebitMomentum&);

// The step: value -= learning_rate rate (momentum_factor momentum + weight_decay value), with the
// rate and the weight decay of the range. Still entries keep their value, even with decay.
struct OnebitStep {
  View value;                           // f32 [elements]  updated
  View compute_value;                   // bf16 or f16 [elements]  overwritten (empty: none)
  ConstView momentum;                   // f32 [elements]
  ConstView still;                      // bitmap
  std::span<const UpdateRange> ranges;  // consecutive from 0 to elements
  double learning_rate = 0, momentum_factor = 1;
};
void onebit_step(Context&, const OnebitStep&);

}  // namespace onebit::updates
