#include "onebit/data/text/grapheme.h"

#include <unicode/uchar.h>

#include <cstdint>
#include <vector>

#include "onebit/data/text/utf8.h"

namespace onebit::text {
namespace {

constexpr uint8_t kPictograph = 0x80;  // beside the class
constexpr char32_t kTableSize = 0x10000;

uint8_t class_of_high(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  const auto kind = static_cast<uint8_t>(u_getIntPropertyValue(c, UCHAR_GRAPHEME_CLUSTER_BREAK));
  const bool is_pictograph = u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
  return is_pictograph ? uint8_t(kind | kPictograph) : kind;
}

uint8_t class_of(char32_t code_point) {
  static const std::vector<uint8_t> table = [] {
    std::vector<uint8_t> classes(kTableSize);
    for (char32_t c = 0; c < kTableSize; ++c) classes[c] = class_of_high(c);
    return classes;
  }();
  return code_point < kTableSize ? table[code_point] : class_of_high(code_point);
}

bool is_control(uint8_t kind) {
  return kind == U_GCB_CONTROL || kind == U_GCB_CR || kind == U_GCB_LF;
}

// GB6 to GB8: syllables of Hangul.
bool joins_hangul(uint8_t before, uint8_t after) {
  switch (before) {
    case U_GCB_L:
      return after == U_GCB_L || after == U_GCB_V || after == U_GCB_LV || after == U_GCB_LVT;
    case U_GCB_LV:
    case U_GCB_V:
      return after == U_GCB_V || after == U_GCB_T;
    case U_GCB_LVT:
    case U_GCB_T:
      return after == U_GCB_T;
    default:
      return false;
  }
}

}  // namespace

size_t grapheme_bytes(std::string_view utf8) {
  const DecodedCharacter first = decode_utf8(utf8);
  size_t end = first.size_bytes;
  uint8_t before = class_of(first.code_point);
  bool flags_are_odd = before == U_GCB_REGIONAL_INDICATOR;
  bool after_pictograph = (before & kPictograph) != 0;  // and extending characters
  while (end < utf8.size()) {
    const DecodedCharacter next = decode_utf8(utf8.substr(end));
    const uint8_t after = class_of(next.code_point);
    const uint8_t left = before & ~kPictograph, right = after & ~kPictograph;
    const bool joins_lines = left == U_GCB_CR && right == U_GCB_LF;  // GB3
    if (!joins_lines) {
      if (is_control(left) || is_control(right)) break;  // GB4, GB5
      const bool extends =
          right == U_GCB_EXTEND || right == U_GCB_ZWJ || right == U_GCB_SPACING_MARK;
      const bool joins =
          joins_hangul(left, right) || extends || left == U_GCB_PREPEND ||          // GB6 to GB9b
          (after_pictograph && left == U_GCB_ZWJ && (after & kPictograph) != 0) ||  // GB11
          (flags_are_odd && left == U_GCB_REGIONAL_INDICATOR && right == left);     // GB12, GB13
      if (!joins) break;
    }
    flags_are_odd = right == U_GCB_REGIONAL_INDICATOR && !flags_are_odd;
    after_pictograph = (after & kPictograph) != 0 ||
                       (after_pictograph && (right == U_GCB_EXTEND || right == U_GCB_ZWJ));
    before = after;
    end += next.size_bytes;
  }
  return end;
}

}  // namespace onebit::text
