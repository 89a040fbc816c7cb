// Tables of LevelDB, as the index of a TensorFlow checkpoint is one, around given entries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "onebit/ground/base/checksum.h"

namespace onebit::formats {

inline void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

template <typename T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends a block with its trailer and returns its handle.
inline std::string append_block(std::string& file, std::string_view content, char type) {
  std::string handle;
  append_varint(handle, file.size());
  append_varint(handle, content.size());
  std::string covered(content);
  covered += type;
  file += covered;
  append_number(file, mask_crc32c(crc32c(covered.data(), covered.size())));
  return handle;
}

// A table of one data block, `content`, stored (0) or compressed (1).
inline std::string table_file(std::string_view content, char type) {
  std::string file;
  const std::string data = append_block(file, content, type);
  std::string index;
  append_varint(index, 0);
  append_varint(index, 1);
  append_varint(index, data.size());
  index += "z" + data;
  append_number(index, uint32_t{0});
  append_number(index, uint32_t{1});
  std::string footer = std::string(2, '\0') + append_block(file, index, 0);
  footer.resize(40, '\0');
  append_number(footer, uint64_t{0xdb4775248b80fb57u});
  return file + footer;
}

// Without a proper end of the restart points every block would be refused.
inline std::string with_restarts(std::string_view entries) {
  std::string block(entries);
  append_number(block, uint32_t{0});
  append_number(block, uint32_t{1});
  return block;
}

// An entry of a block whose key shares nothing with the one before.
inline std::string table_entry(std::string_view key, std::string_view value) {
  std::string entry(1, '\0');
  append_varint(entry, key.size());
  append_varint(entry, value.size());
  return entry.append(key).append(value);
}

}  // namespace onebit::formats
