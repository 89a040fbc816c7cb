// The substrings that occur more than once in counted words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::corpus {

struct SpelledWord {
  std::u32string characters;  // none is 0
  uint64_t count;
};

// Finds substrings of 2 to `longest` characters that occur at least twice. Of those that are always
// followed by the same character only the longest is found, as by the inner nodes of a suffix tree:
// the others are no more frequent and say less.
class RepeatedSubstrings {
 public:
  struct Found {
    uint32_t begin, size;
    uint64_t count;  // occurrences
  };

  RepeatedSubstrings(const std::vector<SpelledWord>& words, size_t longest);

  // Sorted by their ends in the sorted suffixes, each once.
  const std::vector<Found>& found() const { return found_; }
  std::u32string_view text_of(const Found& found) const {
    return std::u32string_view(text_).substr(found.begin, found.size);
  }

 private:
  // The longest substring that can begin at a place.
  std::u32string_view at(uint32_t begin) const;
  void find();
  void close(size_t common);

  struct Node {
    uint32_t size, begin;
    uint64_t count;
  };

  size_t longest_;
  std::u32string text_;             // the words, each with a 0 behind it
  std::vector<uint64_t> counts_;    // of the word at each place of the text
  std::vector<uint32_t> suffixes_;  // sorted
  std::vector<Node> open_;
  std::vector<Found> found_;
};

}  // namespace onebit::corpus
