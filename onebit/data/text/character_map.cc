#include "onebit/data/text/character_map.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

// Longer clusters are mapped character by character.
constexpr size_t kLongestCluster = 5;

// The parts of a unit of the trie.
bool is_value(uint32_t unit) {
  return (unit & 0x80000000u) != 0;
}
bool has_leaf(uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FFu;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0u) == 0x80;
}

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

// The bytes of the grapheme cluster (Unicode Standard Annex 29) at the front of a text that begins
// with one. Without the rule for Indic conjuncts (GB9c), whose clusters have six bytes and more.
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

size_t characters_in(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  }));
}

// The last characters of a longer value are inserted, the last one of a shorter value stands for
// what is left out.
class Replacing {
 public:
  Replacing(const NormalizedText& from, NormalizedText& to) : rewriting_(from, to) {}

  void keep(std::string_view character) { put(character, 0); }
  void replace(std::string_view old, std::string_view value) {
    const size_t before = characters_in(old), after = characters_in(value);
    for (size_t i = 0; !value.empty(); ++i) {
      const size_t bytes = decode_utf8(value).size_bytes;
      put(value.substr(0, bytes), i >= before ? 1 : 0);
      value.remove_prefix(bytes);
    }
    // What is left out at the front shifts all origins behind it, in the reference too.
    if (after < before && !last_.empty()) change_ -= static_cast<int>(before - after);
  }
  void finish() {
    if (!last_.empty()) rewriting_.put(last_, change_);
  }

 private:
  void put(std::string_view character, int change) {
    finish();
    last_ = character;
    change_ = change;
  }

  Rewriting rewriting_;
  std::string_view last_;
  int change_ = 0;
};

std::string decoded_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find_last_not_of('=') + size_t{1})) {
    uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<uint32_t>(c - '0') + 52;
    } else {
      require(c == '+' || c == '/', "it is not base64");
      value = c == '+' ? 62 : 63;
    }
    bits = (bits << 6) | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  return bytes;
}

}  // namespace

CharacterMap CharacterMap::from_base64(std::string_view text) {
  return CharacterMap(decoded_base64(text));
}

CharacterMap::CharacterMap(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint32_t trie_bytes = 0;
  require(bytes.size() >= sizeof trie_bytes, "it has {} bytes, too few for a trie", bytes.size());
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  require(trie_bytes % 4 == 0 && trie_bytes >= 4 && trie_bytes <= bytes.size(),
          "its trie has {} bytes by its head, and {} are there", trie_bytes, bytes.size());
  trie_.resize(trie_bytes / 4);
  std::memcpy(trie_.data(), bytes.data(), trie_bytes);
  values_ = bytes.substr(trie_bytes);
  check();
  for (size_t byte = 1; byte < maps_ascii_.size(); ++byte) {
    const char character = static_cast<char>(byte);
    maps_ascii_[byte] = find({&character, 1}).has_value();
  }
}

void CharacterMap::check() const {
  require(!values_.empty() && values_.back() == '\0', "its last value has no end");
  const auto invalid = first_invalid_utf8(values_);
  require(!invalid, "its values are not UTF-8 at byte {}", invalid.value_or(0));
  for (uint32_t at = 0; at < trie_.size(); ++at) {
    if (is_value(trie_[at]) || !has_leaf(trie_[at])) continue;
    const size_t begin = value_of(unit(at ^ offset_of(trie_[at])));
    require(begin < values_.size() && !is_continuation(values_[begin]),
            "its trie leads to byte {} of the values, where none begins", begin);
  }
}

std::optional<std::string_view> CharacterMap::find(std::string_view sequence) const {
  uint32_t node = offset_of(unit(0));
  for (const char character : sequence) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte == 0) break;
    node ^= byte;
    const uint32_t here = unit(node);
    if (label_of(here) != byte) return std::nullopt;
    node ^= offset_of(here);
    if (has_leaf(here)) {
      const size_t begin = value_of(unit(node));
      if (begin >= values_.size()) return std::nullopt;
      return std::string_view(values_.data() + begin);
    }
  }
  return std::nullopt;
}

void CharacterMap::apply(const NormalizedText& from, NormalizedText& to) const {
  to.clear();
  Replacing replacing(from, to);
  const std::string_view text = from.text();
  const auto is_plain = [&](size_t at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const bool stands_alone =
        at + 1 == text.size() || (static_cast<uint8_t>(text[at + 1]) < 0x80 && byte != '\r');
    return byte < 0x80 && stands_alone && !maps_ascii_[byte];
  };
  for (size_t at = 0; at < text.size();) {
    if (is_plain(at)) {
      replacing.keep(text.substr(at, 1));
      ++at;
      continue;
    }
    const size_t bytes = grapheme_bytes(text.substr(at));
    const std::string_view cluster = text.substr(at, bytes);
    at += bytes;
    if (const auto value = bytes <= kLongestCluster ? find(cluster) : std::nullopt) {
      replacing.replace(cluster, *value);
      continue;
    }
    for (size_t i = 0; i < bytes;) {
      const std::string_view part = cluster.substr(i, decode_utf8(cluster.substr(i)).size_bytes);
      const auto value = find(part);
      value ? replacing.replace(part, *value) : replacing.keep(part);
      i += part.size();
    }
  }
  replacing.finish();
}

}  // namespace onebit::text
