// Words already split, by their bytes. A hit is one cache line and no allocation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/text/packed_ids.h"
#include "onebit/text/word_hash.h"
#include "onebit/text/word_table.h"

namespace onebit::text {

class WordCache {
 public:
  // Words of up to 8 and up to 16 bytes as little-endian numbers. Absent ids: not there.
  PackedIds find(uint64_t word) const { return short_.find({word}); }
  PackedIds find(uint64_t low, uint64_t high) const { return medium_.find({low, high}); }
  // A word of any length, without a zero byte.
  PackedIds find(std::string_view word) const;

  // Adds a word that is not there. A full cache starts again from empty: the frequent words are
  // back at once, whatever came first.
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
