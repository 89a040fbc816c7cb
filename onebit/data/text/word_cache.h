// A cache of the ids of words, keyed by their bytes. A hit is one cache line and no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace onebit::text {

// A fast 64-bit hash of short byte strings, for tables in memory only.

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

// The token ids of a word in eight bytes. Up to three ids below 2^20 are stored inline, others in
// an arena, as position and count.
class PackedIds {
 public:
  static constexpr size_t kInline = 3;

  PackedIds() = default;  // absent
  PackedIds(std::span<const int32_t> ids, std::vector<int32_t>& arena) {
    const bool fits = ids.size() <= kInline && std::all_of(ids.begin(), ids.end(), [](int32_t id) {
                        return id >= 0 && id <= static_cast<int32_t>(kIdMask);
                      });
    if (fits) {
      bits_ = kPresent | (uint64_t{ids.size()} << kCountShift);
      for (size_t i = 0; i < ids.size(); ++i) {
        bits_ |= static_cast<uint64_t>(ids[i]) << (kIdBits * i);
      }
    } else {
      bits_ = kPresent | kInArena | (uint64_t{ids.size()} << 32) | arena.size();
      arena.insert(arena.end(), ids.begin(), ids.end());
    }
  }

  bool present() const { return bits_ != 0; }
  bool in_arena() const { return (bits_ & kInArena) != 0; }
  // The ids in the arena. Requires in_arena().
  std::span<const int32_t> arena_ids(const std::vector<int32_t>& arena) const {
    return {arena.data() + (bits_ & 0xFFFFFFFFu), (bits_ >> 32) & 0xFFFFFF};
  }
  // Writes kInline numbers to `out`, the first count() of which are ids. Requires !in_arena().
  void unpack(int32_t* out) const {
    out[0] = static_cast<int32_t>(bits_ & kIdMask);
    out[1] = static_cast<int32_t>((bits_ >> kIdBits) & kIdMask);
    out[2] = static_cast<int32_t>((bits_ >> (2 * kIdBits)) & kIdMask);
  }
  size_t count() const { return (bits_ >> kCountShift) & 3; }

 private:
  static constexpr uint64_t kPresent = uint64_t{1} << 63, kInArena = uint64_t{1} << 62;
  static constexpr int kCountShift = 60, kIdBits = 20;
  static constexpr uint64_t kIdMask = (1 << kIdBits) - 1;

  uint64_t bits_ = 0;
};

// An open-addressing table from words of a fixed number of bytes to their ids. Entries are so small
// that the frequent words of a language stay in the processor's caches.

// Words of up to 8 * kHalves bytes without a zero byte, zero-filled.
template <size_t kHalves>
class WordTable {
 public:
  using Key = std::array<uint64_t, kHalves>;

  // Returns absent ids if the word is not in the table.
  PackedIds find(const Key& key) const {
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (same(entry.key, key) || !entry.ids.present()) return entry.ids;
    }
  }

  // Adds a word that is not in the table. Half of the slots stay free.
  void insert(const Key& key, PackedIds ids) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    place({key, ids});
    ++used_;
  }

  size_t size() const { return used_; }
  void clear() { *this = WordTable(); }

 private:
  static constexpr size_t kFirstEntries = size_t{1} << 12;
  struct Entry {
    Key key{};
    PackedIds ids;
  };

  // std::array's own comparison calls memcmp, which took a third of the time of tokenizing.
  static bool same(const Key& a, const Key& b) {
    uint64_t difference = 0;
    for (size_t half = 0; half < kHalves; ++half) difference |= a[half] ^ b[half];
    return difference == 0;
  }
  size_t slot(const Key& key) const {
    const uint64_t hash = hash_short_word(key[0], kHalves > 1 ? key[kHalves - 1] : 0);
    return static_cast<size_t>(hash >> shift_);
  }
  void place(const Entry& entry) {
    size_t i = slot(entry.key);
    while (entries_[i].ids.present()) i = (i + 1) & mask_;
    entries_[i] = entry;
  }
  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    shift_ -= 1;
    for (const Entry& entry : old) {
      if (entry.ids.present()) place(entry);
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(kFirstEntries);
  size_t mask_ = kFirstEntries - 1, used_ = 0;
  int shift_ = 64 - std::countr_zero(kFirstEntries);
};

class WordCache {
 public:
  // Finds words of up to 8 or 16 bytes, given as little-endian numbers. Absent ids: not found.
  PackedIds find(uint64_t word) const { return short_.find({word}); }
  PackedIds find(uint64_t low, uint64_t high) const { return medium_.find({low, high}); }
  // A word of any length, without a zero byte.
  PackedIds find(std::string_view word) const;

  // Adds a word that is not in the cache. A full cache is cleared: the frequent words return at
  // once, whatever was added first.
  PackedIds insert(std::string_view word, std::span<const int32_t> ids);
  const std::vector<int32_t>& arena() const { return arena_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return hash_word(word); }
  };

  WordTable<1> short_;
  WordTable<2> medium_;
  std::unordered_map<std::string, PackedIds, Hash, std::equal_to<>> long_;
  std::vector<int32_t> arena_;
};

}  // namespace onebit::text
