// Places in a text, in characters instead of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace onebit::serve {

// Knows how many characters there are before some bytes of a text, and counts from there.
class CharacterPlaces {
 public:
  // `text` must outlive it.
  explicit CharacterPlaces(std::string_view text);
  // The character to which a byte of the text belongs, or their number for the text's end.
  int64_t at(size_t byte) const;

 private:
  // The first character that begins in each block of bytes.
  struct Mark {
    uint32_t byte, character;
  };

  std::string_view text_;
  std::vector<Mark> marks_;
};

}  // namespace onebit::serve
