// A cache of the ids of words, keyed by their bytes. A hit is one cache line and no allocation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/packed_ids.h"
#include "onebit/data/text/word_hash.h"
#include "onebit/data/text/word_table.h"

namespace onebit::text {

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
