#include "onebit/data/formats/tensor_bundle.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

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

namespace {

constexpr uint64_t kMaxShards = 10000;
// TensorFlow's own limit.
constexpr size_t kMaxAxes = 254;

struct FileDType {
  uint64_t number;  // core/framework/types.proto
  std::string_view name;
  DType dtype;
  bool is_read;
};

constexpr FileDType kDTypes[] = {
    {1, "float", DType::kF32, true},      {2, "double", DType::kF64, true},
    {3, "int32", DType::kI32, true},      {4, "uint8", DType::kU8, true},
    {5, "int16", DType::kU16, false},     {6, "int8", DType::kU8, false},
    {8, "complex64", DType::kU64, false}, {9, "int64", DType::kI64, true},
    {10, "bool", DType::kU8, false},      {14, "bfloat16", DType::kBF16, true},
    {17, "uint16", DType::kU16, true},    {19, "half", DType::kF16, true},
    {22, "uint32", DType::kU32, true},    {23, "uint64", DType::kU64, true},
};

// BundleHeaderProto: the value of the empty key.
struct Header {
  uint64_t shards = 1;
};

Header header_of(std::string_view message, const std::string& place, uint64_t offset) {
  Header header;
  ProtoReader reader(message, place, offset);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) header.shards = field.value;
    require(field.number != 2 || field.value == 0,
            "{}: written on a big-endian machine; write it again on a little-endian one", place);
  }
  require(header.shards >= 1 && header.shards <= kMaxShards, "{}: offset {}: {} data files", place,
          offset, header.shards);
  return header;
}

// BundleEntryProto.
struct Entry {
  uint64_t dtype = 0, shard = 0, offset = 0, size_bytes = 0;
  std::vector<uint64_t> shape;
  uint32_t masked_crc = 0;
  bool in_slices = false, has_shape = true;
};

// TensorShapeProto: dimensions {size = 1} as field 2, unknown_rank as field 3.
void read_shape(const ProtoField& message, const std::string& place, Entry& entry) {
  ProtoReader reader(message.bytes, place, message.offset);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 3 && field.value != 0) entry.has_shape = false;
    if (field.number != 2) continue;
    uint64_t extent = 0;
    ProtoReader dimension(field.bytes, place, field.offset);
    for (ProtoField inner; dimension.next(inner);) {
      if (inner.number == 1) extent = inner.value;
    }
    require(entry.shape.size() < kMaxAxes, "{}: offset {}: a shape of more than {} axes", place,
            field.offset, kMaxAxes);
    entry.shape.push_back(extent);
  }
}

Entry entry_of(std::string_view message, const std::string& place, uint64_t offset) {
  Entry entry;
  ProtoReader reader(message, place, offset);
  for (ProtoField field; reader.next(field);) {
    switch (field.number) {
      case 1:
        entry.dtype = field.value;
        break;
      case 2:
        read_shape(field, place, entry);
        break;
      case 3:
        entry.shard = field.value;
        break;
      case 4:
        entry.offset = field.value;
        break;
      case 5:
        entry.size_bytes = field.value;
        break;
      case 6:
        entry.masked_crc = static_cast<uint32_t>(field.value);
        break;
      case 7:
        entry.in_slices = true;
        break;
      default:
        break;
    }
  }
  return entry;
}

// The number of elements, or nothing if their bytes would not fit into 62 bits.
std::optional<uint64_t> elements_of(const std::vector<uint64_t>& shape) {
  uint64_t elements = 1, bound = uint64_t{1} << 59;
  bool is_empty = false;
  for (const uint64_t extent : shape) {
    is_empty = is_empty || extent == 0;
    if (extent == 0) continue;
    if (extent > bound) return std::nullopt;
    bound /= extent;
    elements *= extent;
  }
  return is_empty ? 0 : elements;
}

Path prefix_of(const Path& path) {
  return path.extension() == ".index" ? Path(path).replace_extension() : path;
}

}  // namespace

// Gathers the entries while the table is read.
struct TensorBundle::Builder {
  const std::string& place;
  TensorBundle& bundle;
  const Path& prefix;
  bool has_header = false;
  std::vector<TensorEntry> entries = {};

  void open_shards(const Header& header) {
    for (uint64_t i = 0; i < header.shards; ++i) {
      Path shard = prefix;
      shard += fmt::format(".data-{:05}-of-{:05}", i, header.shards);
      bundle.shards_.emplace_back(shard);
    }
    has_header = true;
  }

  void visit(std::string_view key, std::string_view value, uint64_t offset) {
    if (key.empty()) return open_shards(header_of(value, place, offset));
    require(has_header, "{}: offset {}: the header of the bundle is missing", place, offset);
    if (key[0] == '\0') return;  // a slice of a tensor that is listed itself, as stored in slices
    const Entry entry = entry_of(value, place, offset);
    TensorEntry listed{std::string(key), DType::kF32, Shape{0}, {}};
    Where where;
    if (entry.in_slices || !entry.has_shape) {
      listed.unreadable = entry.in_slices ? "it is stored in slices" : "it has no shape";
    } else {
      fill(entry, offset, listed, where);
    }
    bundle.where_.push_back(where);
    entries.push_back(std::move(listed));
  }

  void fill(const Entry& entry, uint64_t offset, TensorEntry& listed, Where& where) {
    const auto type = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const auto& known) { return known.number == entry.dtype; });
    if (type == std::end(kDTypes)) {  // text and the like, of unknown element size
      listed.unreadable = fmt::format("elements of type {} are not read", entry.dtype);
      return;
    }
    listed.dtype = type->dtype;
    const auto elements = elements_of(entry.shape);
    const auto element_bytes = static_cast<uint64_t>(size_bytes_of(type->dtype));
    require(elements && *elements * element_bytes == entry.size_bytes,
            "{}: offset {}: tensor {} of shape [{}] and type {} cannot have {} bytes", place,
            offset, quote(listed.name), fmt::join(entry.shape, ", "), type->name, entry.size_bytes);
    require(entry.shard < bundle.shards_.size(),
            "{}: offset {}: tensor {} is in data file {} of {}", place, offset, quote(listed.name),
            entry.shard, bundle.shards_.size());
    const MappedFile& shard = bundle.shards_[entry.shard];
    const uint64_t size = shard.bytes().size();
    require(
        entry.offset <= size && entry.size_bytes <= size - entry.offset,
        "{}: offset {}: tensor {} of {} bytes exceeds the end of the file; the file is cut short",
        shard.path().string(), entry.offset, quote(listed.name), entry.size_bytes);
    where = {entry.shard, entry.offset, entry.offset + entry.size_bytes, entry.masked_crc};
    if (!type->is_read)
      listed.unreadable = fmt::format("elements of type {} are not read", type->name);
    if (entry.shape.size() > Shape::kMaxRank) {
      listed.unreadable =
          fmt::format("it has {} axes, at most {} are read", entry.shape.size(), Shape::kMaxRank);
      listed.shape = Shape{static_cast<int64_t>(*elements)};
      return;
    }
    listed.shape = {};
    for (const uint64_t extent : entry.shape) listed.shape.append(static_cast<int64_t>(extent));
  }
};

TensorBundle::TensorBundle(const Path& path) {
  const Path prefix = prefix_of(path);
  Path index_path = prefix;
  index_path += ".index";
  const MappedFile index(index_path);
  const std::string place = index_path.string();
  Builder builder{place, *this, prefix};
  read_leveldb_table(index.bytes(), place,
                     [&](std::string_view key, std::string_view value, uint64_t offset) {
                       builder.visit(key, value, offset);
                     });
  require(builder.has_header, "{}: the header of the bundle is missing", place);
  set_entries(place, std::move(builder.entries));
}

std::span<const std::byte> TensorBundle::readable_bytes(size_t index,
                                                        std::vector<std::byte>&) const {
  const Where& where = where_[index];
  const MappedFile& shard = shards_[where.shard];
  const auto bytes = shard.bytes().subspan(where.begin, where.end - where.begin);
  require(mask_crc32c(crc32c(bytes.data(), bytes.size())) == where.masked_crc,
          "{}: offset {}: tensor {} does not match its checksum; the file is damaged",
          shard.path().string(), where.begin, quote(entries()[index].name));
  return bytes;
}

}  // namespace onebit::formats
