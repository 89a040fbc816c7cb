// Counter-based random numbers: Philox4x32 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011), with 10 rounds unless a caller says otherwise. The same function runs on the
// host and on CUDA devices, so a dropout mask (7 rounds) is a pure function of its key and counter.
#pragma once

#include <array>
#include <cstdint>

#ifdef __CUDACC__
#define ONEBIT_HOST_DEVICE __host__ __device__
#else
#define ONEBIT_HOST_DEVICE
#endif

namespace onebit {

struct PhiloxCounter {
  uint32_t word[4];
};

struct PhiloxKey {
  uint32_t word[2];
};

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85u;

ONEBIT_HOST_DEVICE inline PhiloxCounter philox_round(PhiloxCounter counter, PhiloxKey key) {
  const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter.word[0];
  const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter.word[2];
  return {{static_cast<uint32_t>(product1 >> 32) ^ counter.word[1] ^ key.word[0],
           static_cast<uint32_t>(product1),
           static_cast<uint32_t>(product0 >> 32) ^ counter.word[3] ^ key.word[1],
           static_cast<uint32_t>(product0)}};
}

// The key of the round after the one that `key` is for.
ONEBIT_HOST_DEVICE inline PhiloxKey next_round_key(PhiloxKey key) {
  return {{key.word[0] + kPhiloxWeyl0, key.word[1] + kPhiloxWeyl1}};
}

ONEBIT_HOST_DEVICE inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key,
                                               int rounds = 10) {
  for (int round = 0; round < rounds; ++round) {
    counter = philox_round(counter, key);
    key = next_round_key(key);
  }
  return counter;
}

ONEBIT_HOST_DEVICE inline PhiloxKey philox_key(uint64_t seed) {
  return {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
}

// A sequence of numbers that depends only on (seed, stream, index): for data and initialisation.
class RandomSequence {
 public:
  RandomSequence(uint64_t seed, uint64_t stream, uint64_t index)
      : key_(philox_key(seed ^ (stream * 0x9E3779B97F4A7C15ull))), index_(index) {}

  uint32_t next_u32() {
    if (used_ == 4) refill();
    return block_.word[used_++];
  }
  // Uniform in [0, bound), unbiased (Lemire's rejection). bound > 0.
  uint32_t below(uint32_t bound) {
    for (;;) {
      const uint64_t product = uint64_t{next_u32()} * bound;
      const uint32_t low = static_cast<uint32_t>(product);
      if (low >= bound || low >= (0u - bound) % bound) return static_cast<uint32_t>(product >> 32);
    }
  }
  // Uniform in [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = next_u32() >> 5, low = next_u32() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1.0p-53;
  }

 private:
  void refill() {
    block_ = philox(
        {{static_cast<uint32_t>(index_), static_cast<uint32_t>(index_ >> 32), draws_++, 0}}, key_);
    used_ = 0;
  }

  PhiloxKey key_;
  uint64_t index_;
  uint32_t draws_ = 0;
  PhiloxCounter block_{};
  int used_ = 4;
};

}  // namespace onebit
