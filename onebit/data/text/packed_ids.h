// The token ids of a word in eight bytes, for the word cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onebit::text {

// Up to three ids below 2^20 are stored inline; others in an arena, as position and count.
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

}  // namespace onebit::text
