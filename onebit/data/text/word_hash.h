// A fast 64-bit hash of short byte strings, for tables in memory only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace onebit::text {

// Hashes a word of up to 16 bytes given as two numbers. The high bits are the well mixed ones.
inline uint64_t hash_short_word(uint64_t low, uint64_t high) {
  const uint64_t hash = (low ^ std::rotl(high * 0xD6E8FEB86659FD93u, 32)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

inline uint64_t hash_word(std::string_view word) {
  uint64_t hash = word.size() * 0x9E3779B97F4A7C15u;
  while (!word.empty()) {
    uint64_t bytes = 0;
    const size_t size = std::min<size_t>(word.size(), 8);
    std::memcpy(&bytes, word.data(), size);
    hash = std::rotl(hash ^ bytes, 29) * 0xD6E8FEB86659FD93u;
    word.remove_prefix(size);
  }
  return hash ^ (hash >> 32);
}

}  // namespace onebit::text
