// The bytes of a file, unpacked while they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "onebit/base/file.h"

namespace onebit::corpus {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `buffer` with up to `size_bytes` bytes; 0 at the end alone. Errors: unreadable, damaged
  // or cut short, with the path and the byte offset in the file.
  virtual size_t read(char* buffer, size_t size_bytes) = 0;
  // Bytes consumed so far of the file on the disk.
  virtual uint64_t consumed_bytes() const = 0;
};

enum class Packing { kNone, kGzip, kXz, kZstd, kBzip2, kLz4 };

// "gzip", "xz", "zstd", "bzip2", "lz4".
const char* name(Packing packing);
// By the ending of a file's name (".gz", ".xz", ".zst", ".bz2", ".lz4"); kNone for any other.
Packing packing_of_ending(const Path& path);

// Opens a file, or standard input if `path` is "-". Packed data, also of several members or frames,
// is recognised by its first bytes; errors use `name` for the file.
std::unique_ptr<ByteStream> open_byte_stream(const Path& path, const std::string& name);

// Wrap `packed`, for open_byte_stream. gzip is unpacked by zlib, because libarchive, whose filters
// unpack the others, does not compare a gzip member's checksum.
std::unique_ptr<ByteStream> unpack_gzip(std::unique_ptr<ByteStream> packed, std::string name);
std::unique_ptr<ByteStream> unpack_filter(std::unique_ptr<ByteStream> packed, Packing packing,
                                          std::string name);

}  // namespace onebit::corpus
