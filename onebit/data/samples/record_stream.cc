#include "onebit/data/samples/record_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "onebit/ground/base/crc32c.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {
namespace {

template <typename Number>
Number number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// ZLIB of TFRecordOptions: its two-byte header has no magic number except divisibility by 31.
bool looks_like_zlib(const char* bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  return first == 0x78 && (first * 256 + second) % 31 == 0;
}

}  // namespace

RecordStream::RecordStream(std::unique_ptr<corpus::ByteStream> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {}

std::string RecordStream::place() const {
  return fmt::format("{}: record {} (byte {})", name_, number_, offset_);
}

size_t RecordStream::read_bytes(char* to, size_t size_bytes) {
  size_t used = 0;
  while (used < size_bytes) {
    const size_t got = bytes_->read(to + used, size_bytes - used);
    if (got == 0) break;
    used += got;
  }
  return used;
}

bool RecordStream::read(std::string& record) {
  ++number_;
  offset_ = next_offset_;
  std::array<char, kHeaderBytes> header;
  const size_t got = read_bytes(header.data(), header.size());
  if (got == 0) return false;
  require(got == header.size(), "{}: the file is truncated in the length field", place());
  const auto size_bytes = number_at<uint64_t>(header.data());
  const uint32_t length_checksum = mask_crc32c(crc32c(header.data(), sizeof size_bytes));
  if (length_checksum != number_at<uint32_t>(header.data() + sizeof size_bytes)) {
    require(number_ > 1, "{}: {}", name_,
            looks_like_zlib(header.data())
                ? "is zlib-compressed, which is not supported: write it with GZIP or uncompressed "
                  "(TFRecordOptions), or decompress it with `pigz -dz`"
                : "is not a TFRecord file, or its first bytes are damaged (the checksum of the "
                  "first length is wrong)");
    fail("{}: the checksum of its length is wrong: the file is damaged; copy it again", place());
  }
  require(size_bytes <= kMaxRecordBytes, "{}: has {} bytes, more than {}: too long for an example",
          place(), size_bytes, kMaxRecordBytes);
  // Read in pieces, so that a wrong length in a truncated file does not allocate memory.
  constexpr size_t kPiece = size_t{1} << 20;
  record.clear();
  while (record.size() < size_bytes) {
    const size_t used = record.size(), wanted = std::min<size_t>(size_bytes - used, kPiece);
    record.resize(used + wanted);
    require(read_bytes(record.data() + used, wanted) == wanted,
            "{}: the file is truncated in the record of {} bytes", place(), size_bytes);
  }
  std::array<char, kTrailerBytes> trailer;
  require(read_bytes(trailer.data(), trailer.size()) == trailer.size(),
          "{}: the file is truncated before the checksum", place());
  require(number_at<uint32_t>(trailer.data()) == mask_crc32c(crc32c(record.data(), record.size())),
          "{}: its checksum is wrong: the file is damaged; copy it again", place());
  next_offset_ = offset_ + kHeaderBytes + size_bytes + kTrailerBytes;
  return true;
}

}  // namespace onebit::samples
