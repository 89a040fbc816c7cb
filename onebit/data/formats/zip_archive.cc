#include "onebit/data/formats/zip_archive.h"

#include <zlib.h>

#include <algorithm>

#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50,
                   kDirectoryEnd = 0x06054b50, kLargeDirectoryEnd = 0x06064b50,
                   kLargeLocator = 0x07064b50;
constexpr size_t kDirectoryEndBytes = 22, kLargeLocatorBytes = 20, kMaxCommentBytes = 65535;
constexpr uint16_t kLargeSizes = 1;  // the extra field with 64-bit sizes
constexpr uint32_t kIsLarge = 0xFFFFFFFFu;

struct Sizes {
  uint64_t compressed, plain, local_header;
};

// Replaces 32-bit sizes that overflowed by the sizes of the extra field, in its fixed order.
void read_large_sizes(std::string_view extra, Sizes& sizes, ByteReader& reader) {
  ByteReader fields(std::as_bytes(std::span(extra)), reader.place(),
                    reader.offset() - extra.size());
  while (fields.remaining() >= 4) {
    const auto id = fields.number<uint16_t>();
    const auto size = fields.number<uint16_t>();
    const size_t end = fields.at() + size;
    if (id == kLargeSizes) {
      if (sizes.plain == kIsLarge) sizes.plain = fields.number<uint64_t>();
      if (sizes.compressed == kIsLarge) sizes.compressed = fields.number<uint64_t>();
      if (sizes.local_header == kIsLarge) sizes.local_header = fields.number<uint64_t>();
      return;
    }
    fields.seek(end);
  }
}

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> file, const std::string& place)
    : file_(file), place_(place) {
  read_directory(find_directory());
}

ZipArchive::Directory ZipArchive::find_directory() const {
  ByteReader reader(file_, place_);
  const size_t size = file_.size();
  const size_t last = size >= kDirectoryEndBytes ? size - kDirectoryEndBytes : 0;
  const size_t first = last > kMaxCommentBytes ? last - kMaxCommentBytes : 0;
  for (size_t at = last + 1; at-- > first && size >= kDirectoryEndBytes;) {
    reader.seek(at);
    if (reader.number<uint32_t>() != kDirectoryEnd) continue;
    const auto disk = reader.number<uint16_t>(), directory_disk = reader.number<uint16_t>();
    const auto here = reader.number<uint16_t>(), entries = reader.number<uint16_t>();
    const auto directory_bytes = reader.number<uint32_t>(), begin = reader.number<uint32_t>();
    if (at >= kLargeLocatorBytes) {
      reader.seek(at - kLargeLocatorBytes);
      if (reader.number<uint32_t>() == kLargeLocator) return find_large_directory(reader.at());
    }
    if (disk != 0 || directory_disk != 0 || here != entries)
      reader.refuse("a zip of several disks");
    return {begin, directory_bytes, entries};
  }
  fail("{}: the zip archive has no directory at its end; the file is cut short", place_);
}

ZipArchive::Directory ZipArchive::find_large_directory(uint64_t locator) const {
  ByteReader reader(file_, place_);
  reader.seek(locator);
  if (reader.number<uint32_t>() != 0) reader.refuse("a zip of several disks");
  reader.seek(reader.number<uint64_t>());
  if (reader.number<uint32_t>() != kLargeDirectoryEnd) reader.refuse("no zip64 directory here");
  reader.take(8 + 2 + 2 + 4 + 4);  // record size, versions, disks
  const auto here = reader.number<uint64_t>(), entries = reader.number<uint64_t>();
  if (here != entries) reader.refuse("a zip of several disks");
  const auto size_bytes = reader.number<uint64_t>();
  return {reader.number<uint64_t>(), size_bytes, entries};
}

void ZipArchive::read_directory(const Directory& directory) {
  ByteReader reader(file_, place_);
  reader.seek(directory.begin);
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (reader.number<uint32_t>() != kDirectoryEntry) reader.refuse("a damaged zip directory");
    reader.take(4);  // versions
    const auto flags = reader.number<uint16_t>(), method = reader.number<uint16_t>();
    reader.take(4);  // time and date
    const auto crc = reader.number<uint32_t>();
    Sizes sizes{};
    sizes.compressed = reader.number<uint32_t>();
    sizes.plain = reader.number<uint32_t>();
    const auto name_bytes = reader.number<uint16_t>(), extra_bytes = reader.number<uint16_t>(),
               comment_bytes = reader.number<uint16_t>();
    reader.take(2 + 2 + 4);  // disk, attributes
    sizes.local_header = reader.number<uint32_t>();
    const std::string name(reader.take(name_bytes));
    read_large_sizes(reader.take(extra_bytes), sizes, reader);
    reader.take(comment_bytes);
    if ((flags & 1u) != 0) reader.refuse(fmt::format("entry {} is encrypted", quote(name)));
    if (method != 0 || sizes.compressed != sizes.plain) {
      reader.refuse(
          fmt::format("entry {} is compressed (method {}), which torch.save never does; "
                      "unpack it and write it again with torch.save",
                      quote(name), method));
    }
    const uint64_t begin = data_begin(sizes.local_header);
    if (sizes.plain > file_.size() - begin) {
      reader.refuse(fmt::format("entry {} of {} bytes exceeds the end of the file", quote(name),
                                sizes.plain));
    }
    if (!entries_.emplace(name, ZipEntry{begin, begin + sizes.plain, crc}).second) {
      reader.refuse(fmt::format("entry {} is duplicated", quote(name)));
    }
  }
}

uint64_t ZipArchive::data_begin(uint64_t local_header) const {
  ByteReader reader(file_, place_);
  reader.seek(local_header);
  if (reader.number<uint32_t>() != kLocalHeader) reader.refuse("no zip entry begins here");
  reader.take(22);  // fields that the directory repeats
  const auto name_bytes = reader.number<uint16_t>(), extra_bytes = reader.number<uint16_t>();
  reader.take(name_bytes);
  reader.take(extra_bytes);
  return reader.offset();
}

const ZipEntry& ZipArchive::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  require(found != entries_.end(), "{}: the archive lacks the entry {}", place_, quote(name));
  return found->second;
}

void ZipArchive::verify(std::span<const std::byte> file, const ZipEntry& entry,
                        const std::string& place) {
  if (entry.crc32 == 0) return;
  const auto data = file.subspan(entry.begin, entry.end - entry.begin);
  const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size());
  require(
      crc == entry.crc32,
      "{}: offset {}: the {} bytes of a zip entry do not match their checksum; the file is damaged",
      place, entry.begin, data.size());
}

}  // namespace onebit::formats
