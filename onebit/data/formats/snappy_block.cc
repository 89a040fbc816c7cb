#include "onebit/data/formats/snappy_block.h"

#include "onebit/ground/base/byte_reader.h"

namespace onebit::formats {
namespace {

// The length of a literal: in the tag's upper six bits, or in the 1 to 4 bytes that follow.
uint64_t literal_length(uint8_t tag, ByteReader& reader) {
  const unsigned upper = tag >> 2;
  if (upper < 60) return upper + 1;
  uint64_t length = 0;
  const std::string_view bytes = reader.take(upper - 59);
  std::memcpy(&length, bytes.data(), bytes.size());
  return length + 1;
}

struct Copy {
  size_t distance, length;
};

Copy copy_of(uint8_t tag, ByteReader& reader) {
  switch (tag & 3u) {
    case 1:
      return {size_t{tag & 0xE0u} << 3 | reader.number<uint8_t>(), 4 + size_t{(tag >> 2) & 7u}};
    case 2:
      return {reader.number<uint16_t>(), 1 + size_t{tag} / 4};
    default:
      return {reader.number<uint32_t>(), 1 + size_t{tag} / 4};
  }
}

}  // namespace

std::string unpack_snappy(std::span<const std::byte> block, size_t most_bytes,
                          const std::string& place, uint64_t base) {
  ByteReader reader(block, place, base);
  const uint64_t size = reader.varint();
  if (size > most_bytes) {
    reader.refuse(fmt::format("a compressed block that claims {} bytes, at most {} are read", size,
                              most_bytes));
  }
  std::string text;
  text.reserve(size);
  while (!reader.at_end()) {
    const auto tag = reader.number<uint8_t>();
    const size_t left = size - text.size();
    if ((tag & 3u) == 0) {
      const uint64_t length = literal_length(tag, reader);
      if (length > left) reader.refuse("a compressed block longer than it claims");
      text += reader.take(length);
      continue;
    }
    const Copy copy = copy_of(tag, reader);
    if (copy.length > left || copy.distance == 0 || copy.distance > text.size()) {
      reader.refuse("a compressed block with a damaged copy");
    }
    // Copies byte by byte, since a copy may overlap with its own output.
    for (size_t i = 0; i < copy.length; ++i) text += text[text.size() - copy.distance];
  }
  if (text.size() != size) reader.refuse("a compressed block shorter than it claims");
  return text;
}

}  // namespace onebit::formats
