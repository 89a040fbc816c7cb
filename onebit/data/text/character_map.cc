#include "onebit/data/text/character_map.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "onebit/data/text/grapheme.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

// Longer clusters are mapped character by character.
constexpr size_t kLongestCluster = 5;

// The parts of a unit of the trie.
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

}  // namespace

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
