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

// Opens a file, or standard input if `path` is "-". gzip (also with several members) and xz are
// recognised by their first bytes; errors use `name` for the file.
std::unique_ptr<ByteStream> open_byte_stream(const Path& path, const std::string& name);

// Wraps `packed`, for open_byte_stream.
std::unique_ptr<ByteStream> unpack_gzip(std::unique_ptr<ByteStream> packed, std::string name);
std::unique_ptr<ByteStream> unpack_xz(std::unique_ptr<ByteStream> packed, std::string name);

}  // namespace onebit::corpus
