// A cursor over untrusted bytes: every read is bounds-checked, and every error reports the path and
// the offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "onebit/ground/base/error.h"

namespace onebit {

class ByteReader {
 public:
  // `place` (kept by reference) is the path, `base` the offset of bytes[0] in its file.
  ByteReader(std::span<const std::byte> bytes, const std::string& place, uint64_t base = 0)
      : bytes_(bytes), place_(place), base_(base) {}

  size_t at() const { return at_; }
  uint64_t offset() const { return base_ + at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  bool at_end() const { return at_ == bytes_.size(); }
  const std::string& place() const { return place_; }

  void seek(uint64_t at) {
    if (at > bytes_.size()) {
      refuse(fmt::format("jump to {}, but there are only {} bytes", at, bytes_.size()));
    }
    at_ = at;
  }
  // The next `count` bytes, not copied.
  std::string_view take(uint64_t count) {
    if (count > remaining()) {
      refuse(fmt::format("expected {} bytes, {} left; the file is truncated or damaged", count,
                         remaining()));
    }
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
    return taken;
  }
  // A little-endian number.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // The bytes up to the next newline, which is skipped.
  std::string_view line(size_t most) {
    const std::string_view left(reinterpret_cast<const char*>(bytes_.data()) + at_, remaining());
    const size_t end = left.substr(0, most + 1).find('\n');
    if (end == std::string_view::npos) refuse("unterminated line");
    at_ += end + 1;
    return left.substr(0, end);
  }
  // A varint: seven bits per byte, the lowest first (protocol buffers, LevelDB, snappy).
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = number<uint8_t>();
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse("varint of more than ten bytes");
  }
  [[noreturn]] void refuse(const std::string& reason) const {
    fail("{}: offset {}: {}", place_, offset(), reason);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& place_;
  uint64_t base_;
  size_t at_ = 0;
};

// Reads the protocol-buffer wire format field by field: enough for TensorFlow's small messages
// (checkpoints, Example). https://protobuf.dev/programming-guides/encoding
struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;      // of a varint or a fixed-size number
  std::string_view bytes;  // of a string or an embedded message
  uint64_t offset = 0;     // of `bytes` in the file
};

class ProtoReader {
 public:
  ProtoReader(std::string_view message, const std::string& place, uint64_t offset)
      : reader_(std::as_bytes(std::span(message)), place, offset) {}

  // Reads the next field. Returns false at the end. Error: damaged data.
  bool next(ProtoField& field) {
    if (reader_.at_end()) return false;
    const uint64_t key = reader_.varint();
    field = {key >> 3, 0, {}, 0};
    switch (key & 7u) {
      case 0:
        field.value = reader_.varint();
        break;
      case 1:
        field.value = reader_.number<uint64_t>();
        break;
      case 5:
        field.value = reader_.number<uint32_t>();
        break;
      case 2: {
        const uint64_t size = reader_.varint();
        field.offset = reader_.offset();
        field.bytes = reader_.take(size);
        break;
      }
      default:
        reader_.refuse("damaged message");
    }
    return true;
  }

 private:
  ByteReader reader_;
};

}  // namespace onebit
