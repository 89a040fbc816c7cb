// TFRecords and tf.train.Examples, written for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/checksum.h"

namespace onebit::samples {

template <typename Number>
std::string bytes_of_number(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

inline std::string checksum_of(const std::string& bytes) {
  return bytes_of_number(mask_crc32c(crc32c(bytes.data(), bytes.size())));
}

inline std::string record_header(uint64_t size_bytes) {
  const std::string length = bytes_of_number(size_bytes);
  return length + checksum_of(length);
}

inline std::string record_of(const std::string& content) {
  return record_header(content.size()) + content + checksum_of(content);
}

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A field of wire type 2.
inline std::string message_field(uint64_t number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

inline std::string integer_list(const std::vector<int64_t>& numbers) {
  std::string packed;
  for (const int64_t number : numbers) packed += varint(static_cast<uint64_t>(number));
  return message_field(3, message_field(1, packed));
}

inline std::string float_list(const std::vector<float>& numbers) {
  std::string packed;
  for (const float number : numbers) packed += bytes_of_number(number);
  return message_field(2, message_field(1, packed));
}

// An entry of Features.
inline std::string feature(const std::string& name, const std::string& value) {
  return message_field(1, message_field(1, name) + message_field(2, value));
}

inline std::string example(const std::string& features) {
  return message_field(1, features);
}

}  // namespace onebit::samples
