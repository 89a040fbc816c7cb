#include "onebit/ground/metrics/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "onebit/ground/base/error.h"

namespace onebit::metrics {

AppendFile::AppendFile(const Path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  require_call(descriptor_, "{}: cannot open for writing", path.string());
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_, record.data(), record.size());
    const CallResult result = written;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot write", path_.string());
    record.remove_prefix(written);
  }
}

}  // namespace onebit::metrics
