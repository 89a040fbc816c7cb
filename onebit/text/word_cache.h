// Words already split, by their bytes: an open-addressing table of 32-byte entries, so that a hit
// is one cache line and no allocation. Longer words and longer results stand in arenas.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::text {

class WordCache {
 public:
  // Words of up to 16 bytes without a zero byte are their own key; longer ones are hashed.
  struct Key {
    uint64_t low, high;
  };
  // Up to kInlineIds ids lie in the entry itself.
  static constexpr uint32_t kInlineIds = 3;
  struct Entry {
    Key key{0, 0};
    uint32_t count = 0;
    int32_t ids[kInlineIds] = {};
  };

  WordCache();

  static Key key_of(std::string_view word);

  // The entry of a word of up to 16 bytes, or null.
  const Entry* find(Key key) const {
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (entry.key.low == key.low && entry.key.high == key.high) return &entry;
      if (entry.key.low == 0) return nullptr;
    }
  }
  // The entry of any word without a zero byte, or null.
  const Entry* find(std::string_view word) const;

  std::span<const int32_t> ids(const Entry& entry) const {
    if (entry.count <= kInlineIds) return {entry.ids, entry.count};
    return {id_arena_.data() + entry.ids[0], entry.count};
  }

  // Adds a word that is not there. A full cache starts again from empty: the frequent words are
  // back at once, whatever came first. Entries found before are gone after this.
  const Entry* insert(Key key, std::span<const int32_t> ids);
  const Entry* insert(std::string_view word, std::span<const int32_t> ids);

 private:
  // The top byte of `high` in a hashed key; no byte of UTF-8. Below it length and arena offset.
  static constexpr uint64_t kHashedMark = uint64_t{0xFF} << 56;

  size_t slot(Key key) const {
    return static_cast<size_t>(
        ((key.low ^ (key.high * 0xD6E8FEB86659FD93u)) * 0x9E3779B97F4A7C15u) >> shift_);
  }
  size_t slot_of(const Entry& entry) const;
  bool holds(const Entry& entry, uint64_t hash, std::string_view word) const;
  void make_room();
  Entry* place(Key key, size_t from, std::span<const int32_t> ids);

  std::vector<Entry> entries_;
  size_t mask_ = 0, used_ = 0;
  int shift_ = 0;
  std::string word_arena_;
  std::vector<int32_t> id_arena_;
};

}  // namespace onebit::text
