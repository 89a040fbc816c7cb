// A random order of [0, count) without a table: a Feistel cipher on the next power of 4, iterated
// until in range (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#pragma once

#include <array>
#include <cstdint>

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

}  // namespace onebit::batches
