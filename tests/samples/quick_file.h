// Writes files without waiting for the disk, for tests that write thousands.
#pragma once

#include <fstream>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit::samples {

inline void write_quickly(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace onebit::samples
