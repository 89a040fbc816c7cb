#pragma once

#include <string_view>

#include "onebit/ground/base/file.h"

namespace onebit::metrics {

// A file that grows by whole records: on return, each append() has reached the operating system, so
// that a killed process loses none. Errors: cannot open or write (a full disk included), with the
// path.
class AppendFile {
 public:
  explicit AppendFile(const Path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);
  const Path& path() const { return path_; }

 private:
  Path path_;
  int descriptor_;
};

}  // namespace onebit::metrics
