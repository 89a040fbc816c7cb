// Damages files like a failing disk.
#pragma once

#include "onebit/ground/base/file.h"

namespace onebit {

inline void change_last_byte(const Path& path) {
  std::string bytes = read_file(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(path, bytes);
}

}  // namespace onebit
