#include "onebit/ground/base/regular_file.h"

#include <sys/stat.h>

#include "onebit/ground/base/error.h"

namespace onebit {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no file";
}

}  // namespace

void require_regular_file(const Path& path, uint64_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  require(S_ISREG(status.st_mode), "{}: is {}{}, a file was expected", path.string(),
          std::filesystem::is_symlink(path) ? "a link to " : "", kind_of(status.st_mode));
  require(static_cast<uint64_t>(status.st_size) <= most,
          "{}: has {} bytes, at most {} were expected: is it another file?", path.string(),
          status.st_size, most);
}

std::string read_regular_file(const Path& path, uint64_t most) {
  require_regular_file(path, most);
  return read_file(path);
}

}  // namespace onebit
