// A random order of [0, count) without a table: a Feistel cipher on the next power of 4, iterated
// until in range (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#pragma once

#include <array>
#include <cstdint>

#include "onebit/ground/base/philox.h"

namespace onebit::batches {

class Permutation {
 public:
  // count > 0.
  Permutation(uint64_t count, uint64_t seed);

  // A bijection of [0, count).
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t count_;
  int half_bits_;
  std::array<uint64_t, kRounds> keys_;
};

// The keys of the random numbers in onebit/data. Each use has its own stream, so that drawing more
// numbers for one use never changes another.
enum class RandomStream : uint64_t {
  kSource = 0x0d01,       // index: number of the store in the mixture, yields the store's seed
  kEpoch = 0x0d02,        // index: epoch, yields the epoch's seed
  kVisit = 0x0d03,        // per epoch, index: first sentence of the visit
  kExample = 0x0d04,      // per epoch, index: number of the pair in the text
  kPermutation = 0x0d05,  // per epoch, index: round of the cipher
  kPieces = 0x0d06,       // per epoch, index: sentence that is cut into pieces
  kVisitInside = 0x0d07,  // per epoch, index: first token of a visit that begins inside a sentence
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
