#include "onebit/metrics/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "onebit/base/error.h"

namespace onebit::metrics {

AppendFile::AppendFile(const Path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  require(descriptor_ >= 0, "{}: cannot open for writing: {}", path.string(), std::strerror(errno));
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    require(written > 0, "{}: cannot write: {}", path_.string(),
            errno == ENOSPC ? "the disk is full; free space and resume" : std::strerror(errno));
    record.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace onebit::metrics
