// What models that split words into pieces have in common.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit::text {

// A token and the byte range of the text that it represents. Tokens for single bytes of a character
// may share the range.
struct Piece {
  int32_t id;
  uint32_t begin, end;

  bool operator==(const Piece&) const = default;
};

// By byte, the id of its token "<0x41>", or -1. Used for characters that the vocabulary lacks.
using ByteIds = std::array<int32_t, 256>;

// GPT-2's characters for bytes: printable ones stand for themselves, the others follow U+0100.
std::string byte_symbol(uint8_t byte);
// The bytes for which a text of such characters stands, or nothing if it has another character.
std::optional<std::string> bytes_of_symbols(std::string_view symbols);

}  // namespace onebit::text
