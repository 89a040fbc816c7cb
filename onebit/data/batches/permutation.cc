#include "onebit/data/batches/permutation.h"

#include <bit>

#include "onebit/ground/base/error.h"

namespace onebit::batches {

namespace {

// The finalizer of SplitMix64 (Steele et al., "Fast splittable pseudorandom number generators",
// OOPSLA 2014).
uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

}  // namespace

Permutation::Permutation(uint64_t count, uint64_t seed)
    : count_(count), half_bits_((std::bit_width(count - 1) + 1) / 2) {
  ONEBIT_INVARIANT(count > 0);
  for (size_t round = 0; round < keys_.size(); ++round) {
    keys_[round] = derived_seed(seed, RandomStream::kPermutation, round);
  }
}

uint64_t Permutation::operator()(uint64_t index) const {
  ONEBIT_INVARIANT(index < count_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  // Fewer than four rounds on average: the cipher's domain is below 4 * count.
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mixed(right ^ key) & mask);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= count_);
  return index;
}

}  // namespace onebit::batches
