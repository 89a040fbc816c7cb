// A file descriptor that closes itself.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"

namespace onebit {

class OpenFile {
 public:
  // Error: "PATH: cannot PURPOSE", with the system's reason.
  OpenFile(const Path& path, int flags, const char* purpose)
      : value_(::open(path.c_str(), flags | O_CLOEXEC)) {
    require_call(value_, "{}: cannot {}", path.string(), purpose);
  }
  ~OpenFile() { ::close(value_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace onebit
