#include "onebit/data/formats/leveldb_table.h"

#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/crc32c.h"

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

namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr size_t kFooterBytes = 48, kTrailerBytes = 5;
// Blocks are 4 to 256 kB in practice.
constexpr size_t kMaxBlockBytes = size_t{64} << 20;
// A snappy copy of 3 bytes gives at most 64.
constexpr size_t kMaxSnappyGrowth = 32;
constexpr size_t kMaxKeyBytes = 16384;
// Keys share prefixes, so a few bytes can encode a long key again and again.
constexpr size_t kMaxAllKeysBytes = size_t{256} << 20;

using Visit = std::function<void(std::string_view key, std::string_view value, uint64_t offset)>;

struct Handle {
  uint64_t offset, size_bytes;
};

Handle handle_of(ByteReader& reader) {
  const uint64_t offset = reader.varint();
  return {offset, reader.varint()};
}

// The content of a block: checked, unpacked. `storage` holds it if it was compressed.
std::span<const std::byte> block_content(std::span<const std::byte> file, const std::string& place,
                                         Handle handle, std::string& storage) {
  ByteReader reader(file, place);
  reader.seek(handle.offset);
  if (handle.size_bytes > kMaxBlockBytes) reader.refuse("a block of more than 64 MB");
  const std::string_view content = reader.take(handle.size_bytes);
  const auto type = reader.number<uint8_t>();
  const uint32_t expected = reader.number<uint32_t>();
  // The checksum covers the type too.
  if (mask_crc32c(crc32c(content.data(), content.size() + 1)) != expected) {
    reader.refuse("a block that does not match its checksum; the file is damaged");
  }
  const auto bytes = std::as_bytes(std::span(content));
  if (type == 0) return bytes;
  if (type != 1) reader.refuse(fmt::format("a block of unknown compression {}", type));
  const size_t most = std::min(kMaxBlockBytes, content.size() * kMaxSnappyGrowth);
  storage = unpack_snappy(bytes, most, place, handle.offset);
  return std::as_bytes(std::span(storage));
}

// The entries of a block: keys with a prefix shared with the one before. The restart points after
// them are needed only by searches.
void read_block(std::span<const std::byte> content, const std::string& place, uint64_t offset,
                const Visit& visit) {
  ByteReader reader(content, place, offset);
  if (content.size() < 4) reader.refuse("a block without restart points");
  reader.seek(content.size() - 4);
  const uint64_t restart_bytes = 4 * (uint64_t{reader.number<uint32_t>()} + 1);
  if (restart_bytes > content.size()) reader.refuse("more restart points than the block contains");
  ByteReader entries(content.first(content.size() - restart_bytes), place, offset);
  std::string key;
  bool is_first = true;
  while (!entries.at_end()) {
    const uint64_t shared = entries.varint(), own = entries.varint(), value = entries.varint();
    if (shared > key.size() || own > kMaxKeyBytes || shared + own > kMaxKeyBytes) {
      entries.refuse("a damaged key");
    }
    std::string next = key.substr(0, shared);
    next += entries.take(own);
    if (!is_first && next <= key) entries.refuse("keys that are not in ascending order");
    is_first = false;
    key = std::move(next);
    visit(key, entries.take(value), offset);
  }
}

}  // namespace

void read_leveldb_table(std::span<const std::byte> file, const std::string& place,
                        const Visit& visit) {
  ByteReader footer(file, place);
  if (file.size() < kFooterBytes) footer.refuse("not a table: fewer bytes than a footer has");
  footer.seek(file.size() - 8);
  if (footer.number<uint64_t>() != kMagic) {
    footer.refuse(
        "not a table: the magic number at its end is missing; the file is cut short or "
        "another format");
  }
  footer.seek(file.size() - kFooterBytes);
  handle_of(footer);  // the meta index, of filters
  const Handle index = handle_of(footer);
  std::string last_key;
  bool is_first = true;
  size_t all_keys_bytes = 0, all_blocks_bytes = 0;
  const Visit visit_checked = [&](std::string_view key, std::string_view value, uint64_t offset) {
    all_keys_bytes += key.size();
    const bool rises = is_first || key > last_key;
    require(rises && all_keys_bytes <= kMaxAllKeysBytes, "{}: offset {}: {}", place, offset,
            rises ? "keys of far more bytes than a checkpoint has"
                  : "keys that are not in ascending order");
    is_first = false;
    last_key = key;
    visit(key, value, offset);
  };
  std::string index_storage;
  const auto index_content = block_content(file, place, index, index_storage);
  read_block(index_content, place, index.offset,
             [&](std::string_view, std::string_view value, uint64_t offset) {
               ByteReader reader(std::as_bytes(std::span(value)), place, offset);
               const Handle handle = handle_of(reader);
               // Blocks do not overlap, so all together fit into the file.
               all_blocks_bytes += handle.size_bytes + kTrailerBytes;
               if (all_blocks_bytes > file.size()) reader.refuse("blocks that overlap");
               std::string storage;
               read_block(block_content(file, place, handle, storage), place, handle.offset,
                          visit_checked);
             });
}

}  // namespace onebit::formats
