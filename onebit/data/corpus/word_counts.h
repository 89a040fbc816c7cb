// How often each word of a text occurs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::corpus {

// Occurrences of each word: an open-addressing table over an arena of bytes.
class WordCounts {
 public:
  WordCounts();

  // `hash` is any deterministic function of the word.
  void add(std::string_view word, uint64_t hash, uint64_t times = 1);
  void add(const WordCounts& other);
  size_t size() const { return places_.size(); }
  // In the order in which words were first added. i < size().
  std::string_view word(size_t i) const {
    return {arena_.data() + places_[i].offset, places_[i].size_bytes};
  }
  uint64_t count(size_t i) const { return places_[i].count; }

 private:
  struct Place {
    uint64_t hash, offset, count;
    uint32_t size_bytes;
  };

  void grow();

  std::vector<Place> places_;
  std::vector<uint32_t> slots_;  // index + 1, or 0
  std::string arena_;
};

}  // namespace onebit::corpus
