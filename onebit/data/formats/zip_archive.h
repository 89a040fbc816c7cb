// Reads the part of the zip format that torch.save writes: entries stored without compression,
// which are read in place. APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14-4.3.16, 4.5.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace onebit::formats {

struct ZipEntry {
  uint64_t begin = 0, end = 0;  // of the data, in bytes from the start of the file
  uint32_t crc32 = 0;           // 0 if the writer computed none
};

class ZipArchive {
 public:
  // `file` must outlive the archive, and `place` is its path. Errors (path, offset, reason): no
  // central directory, an entry out of bounds, compressed or encrypted, a duplicate name, several
  // disks.
  ZipArchive(std::span<const std::byte> file, const std::string& place);

  const std::unordered_map<std::string, ZipEntry>& entries() const { return entries_; }
  // Error: no such entry.
  const ZipEntry& entry(const std::string& name) const;
  // Error (path, offset): the data does not match the entry's checksum.
  static void verify(std::span<const std::byte> file, const ZipEntry& entry,
                     const std::string& place);
  std::span<const std::byte> bytes(const ZipEntry& entry) const {
    return file_.subspan(entry.begin, entry.end - entry.begin);
  }

 private:
  struct Directory {
    uint64_t begin = 0, size_bytes = 0, entries = 0;
  };

  Directory find_directory() const;
  Directory find_large_directory(uint64_t locator) const;
  void read_directory(const Directory& directory);
  uint64_t data_begin(uint64_t local_header) const;

  std::span<const std::byte> file_;
  std::string place_;
  std::unordered_map<std::string, ZipEntry> entries_;
};

}  // namespace onebit::formats
