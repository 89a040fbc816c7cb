#include "onebit/data/formats/tensor_bundle.h"

#include <algorithm>
#include <utility>

#include "onebit/data/formats/leveldb_table.h"
#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/crc32c.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
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
