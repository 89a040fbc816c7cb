// Places in a text, in characters instead of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "onebit/data/text/utf8.h"

namespace onebit::serve {

// Counts the characters before a byte of a text. A byte within a character counts as the next one.
class CharacterPlaces {
 public:
  explicit CharacterPlaces(std::string_view text) : text_(text) {}
  // Bytes are asked for in ascending order.
  int64_t at(size_t byte) {
    for (; byte_ < byte; ++characters_) {
      byte_ += text::decode_utf8(text_.substr(byte_)).size_bytes;
    }
    return characters_;
  }

 private:
  std::string_view text_;
  size_t byte_ = 0;
  int64_t characters_ = 0;
};

}  // namespace onebit::serve
