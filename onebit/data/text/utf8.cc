#include "onebit/data/text/utf8.h"

#include <algorithm>
#include <cstring>

namespace onebit::text {
namespace {

// The sequence length of a lead byte (0: not a lead byte), and the range of the second byte.
struct Lead {
  uint32_t size_bytes;
  uint8_t second_min, second_max;
};

Lead lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

DecodedCharacter decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead l = lead(byte(0));
  if (l.size_bytes == 1) return {byte(0), 1};
  if (l.size_bytes == 0) return {kReplacementCharacter, 1};
  char32_t code_point = byte(0) & (0x7Fu >> l.size_bytes);
  for (uint32_t i = 1; i < l.size_bytes; ++i) {
    const uint8_t low = i == 1 ? l.second_min : uint8_t{0x80};
    const uint8_t high = i == 1 ? l.second_max : uint8_t{0xBF};
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {kReplacementCharacter, i};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {code_point, l.size_bytes};
}

DecodedCharacter last_character(std::string_view text) {
  const size_t longest = std::min<size_t>(text.size(), 4);
  for (size_t bytes = longest; bytes > 1; --bytes) {
    const DecodedCharacter c = decode_utf8(text.substr(text.size() - bytes));
    if (c.size_bytes == bytes && c.code_point != kReplacementCharacter) return c;
  }
  return decode_utf8(text.substr(text.size() - 1));
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + i, 8);
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const DecodedCharacter c = decode_utf8(text.substr(i));
    // Distinguishes a well-formed U+FFFD, which has three bytes and starts with EF.
    if (c.code_point == kReplacementCharacter &&
        (c.size_bytes != 3 || static_cast<uint8_t>(text[i]) != 0xEF)) {
      return i;
    }
    i += c.size_bytes;
  }
  return std::nullopt;
}

void append_utf8(char32_t c, std::string& text) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | (c >> 6));
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | (c >> 12));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | (c >> 18));
    add(0x80 | ((c >> 12) & 0x3F));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

std::u32string code_points(std::string_view utf8) {
  std::u32string result;
  while (!utf8.empty()) {
    const DecodedCharacter c = decode_utf8(utf8);
    result.push_back(c.code_point);
    utf8.remove_prefix(c.size_bytes);
  }
  return result;
}

}  // namespace onebit::text
