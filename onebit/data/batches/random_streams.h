// The keys of the random numbers in onebit/data. Each use has its own stream, so that drawing more
// numbers for one use never changes another.
#pragma once

#include <cstdint>

#include "onebit/ground/base/philox.h"

namespace onebit::batches {

enum class RandomStream : uint64_t {
  kSource = 0x0d01,       // index: number of the store in the mixture; yields the store's seed
  kEpoch = 0x0d02,        // index: epoch; yields the epoch's seed
  kVisit = 0x0d03,        // per epoch; index: first sentence of the visit
  kExample = 0x0d04,      // per epoch; index: number of the pair in the text
  kPermutation = 0x0d05,  // per epoch; index: round of the cipher
  kPieces = 0x0d06,       // per epoch; index: sentence that is cut into pieces
  kVisitInside = 0x0d07,  // per epoch; index: first token of a visit that begins inside a sentence
};

inline RandomSequence random_sequence(uint64_t seed, RandomStream stream, uint64_t index) {
  return RandomSequence(seed, static_cast<uint64_t>(stream), index);
}

inline uint64_t derived_seed(uint64_t seed, RandomStream stream, uint64_t index) {
  RandomSequence random = random_sequence(seed, stream, index);
  const uint64_t high = random.next_u32();
  return high << 32 | random.next_u32();
}

}  // namespace onebit::batches
