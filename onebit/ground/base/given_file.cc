#include "onebit/ground/base/given_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/open_file.h"

namespace onebit {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

// "16 MiB" for a limit of whole mebibytes.
std::string in_words(uint64_t bytes) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  return bytes % kMebibyte == 0 ? fmt::format("{} MiB", bytes / kMebibyte)
                                : fmt::format("{} bytes", bytes);
}

[[noreturn]] void refuse(const std::string& name, const FileKind& kind) {
  fail("{}: has more than {}, the most that {} may have: is it another file?", name,
       in_words(kind.most_bytes), kind.name);
}

std::string read_all(int descriptor, const std::string& name, const FileKind& kind) {
  std::string content;
  for (;;) {
    const size_t used = content.size();
    content.resize(used + kBlockBytes);
    const ssize_t got = ::read(descriptor, content.data() + used, kBlockBytes);
    const CallResult result = got;
    content.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot read", name);
    if (got == 0) return content;
    if (content.size() > kind.most_bytes) refuse(name, kind);
  }
}

}  // namespace

std::string read_given_file(const Path& path, const FileKind& kind) {
  const OpenFile file(path, O_RDONLY, "open");
  struct stat status {};
  require_call(::fstat(file.get(), &status), "{}: cannot read its size", path.string());
  require(!S_ISDIR(status.st_mode), "{}: is a folder, {} was expected", path.string(), kind.name);
  if (static_cast<uint64_t>(status.st_size) > kind.most_bytes) refuse(path.string(), kind);
  return read_all(file.get(), path.string(), kind);
}

std::string read_standard_input(const FileKind& kind) {
  return read_all(STDIN_FILENO, "standard input", kind);
}

}  // namespace onebit
