// An open-addressing table from words of a fixed number of bytes to their ids. Entries are so small
// that the frequent words of a language stay in the processor's caches.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "onebit/data/text/packed_ids.h"
#include "onebit/data/text/word_hash.h"

namespace onebit::text {

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

  // Adds a word that is not in the table; half of the slots stay free.
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

}  // namespace onebit::text
