// The bytes of a file, decompressed while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit::corpus {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `buffer` with up to `size_bytes` bytes and returns their number, which is 0 only at the
  // end. Errors: unreadable, damaged, truncated, shortened meanwhile, with path and byte offset.
  virtual size_t read(char* buffer, size_t size_bytes) = 0;
  // The number of bytes of the file on disk that have been consumed.
  virtual uint64_t consumed_bytes() const = 0;
};

enum class Packing { kNone, kGzip, kXz, kZstd, kBzip2, kLz4 };

// "gzip", "xz", "zstd", "bzip2", "lz4".
const char* name(Packing packing);
// Determined by a file's suffix (".gz", ".xz", ".zst", ".bz2", ".lz4"). kNone for any other.
Packing packing_of_ending(const Path& path);
// The path without the suffix of a packing: "a.txt" for "a.txt.gz".
Path unpacked_name(Path path);

// Opens a file, or standard input if `path` is "-". Compressed data, also with several members or
// frames, is detected by its first bytes. Errors name the file as `name`.
std::unique_ptr<ByteStream> open_byte_stream(const Path& path, const std::string& name);

// The whole file, decompressed. Errors: as for the stream, and more bytes than its kind has.
std::string read_unpacked(const Path& path, const FileKind& kind);

// Decompress `packed`, for open_byte_stream. gzip uses zlib, because libarchive, whose filters
// handle the other formats, does not verify a gzip member's checksum.
std::unique_ptr<ByteStream> unpack_gzip(std::unique_ptr<ByteStream> packed, std::string name);
std::unique_ptr<ByteStream> unpack_filter(std::unique_ptr<ByteStream> packed, Packing packing,
                                          std::string name);

}  // namespace onebit::corpus
