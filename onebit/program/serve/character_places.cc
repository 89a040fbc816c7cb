#include "onebit/program/serve/character_places.h"

#include <algorithm>

#include "onebit/data/text/utf8.h"

namespace onebit::serve {
namespace {

constexpr size_t kBlockBytes = 64;  // more than a character has

size_t size_of_character(std::string_view text, size_t byte) {
  return text::decode_utf8(text.substr(byte)).size_bytes;
}

}  // namespace

CharacterPlaces::CharacterPlaces(std::string_view text) : text_(text) {
  marks_.reserve(text.size() / kBlockBytes + 1);
  uint32_t character = 0;
  for (size_t byte = 0; byte < text.size(); byte += size_of_character(text, byte)) {
    if (byte >= marks_.size() * kBlockBytes) {
      marks_.push_back({static_cast<uint32_t>(byte), character});
    }
    ++character;
  }
  // For the end, and a text without characters.
  marks_.push_back({static_cast<uint32_t>(text.size()), character});
}

int64_t CharacterPlaces::at(size_t byte) const {
  size_t block = std::min(byte / kBlockBytes, marks_.size() - 1);
  if (marks_[block].byte > byte) --block;
  auto [begin, character] = marks_[block];
  for (size_t next = begin; next < text_.size(); ++character) {
    next += size_of_character(text_, next);
    if (next > byte) break;
  }
  return character;
}

}  // namespace onebit::serve
