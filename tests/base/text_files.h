// Reads and writes text files in tests.
#pragma once

#include <string>
#include <string_view>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"

namespace onebit {

class TextFiles {
 public:
  Path write(const std::string& name, std::string_view text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  Path path(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

}  // namespace onebit
