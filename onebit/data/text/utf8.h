// Checks and decodes UTF-8 (The Unicode Standard, table 3-7: no overlong forms, no surrogates,
// nothing above U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit::text {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// Returns the byte offset of the first ill-formed sequence, or nothing if the text is UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The code point at the front and its length in bytes. Ill-formed bytes give U+FFFD and the length
// of their maximal subpart (at least 1). `text` is not empty.
struct DecodedCharacter {
  char32_t code_point;
  uint32_t size_bytes;
};
DecodedCharacter decode_utf8(std::string_view text);

// The same at the end of a text that is not empty.
DecodedCharacter last_character(std::string_view text);

// All code points of a text, ill-formed bytes as above.
std::u32string code_points(std::string_view utf8);

// Appends the UTF-8 form of a code point that is not a surrogate.
void append_utf8(char32_t code_point, std::string& text);

}  // namespace onebit::text
