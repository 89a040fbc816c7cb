#include "onebit/ground/base/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/system_call.h"

namespace onebit {
namespace {

constexpr int kMostLinks = 40;  // as in the kernel

Path parent_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

}  // namespace

Path where_it_leads(const Path& path) {
  namespace files = std::filesystem;
  std::error_code error;
  Path place = path;
  for (int followed = 0; files::is_symlink(files::symlink_status(place, error)); ++followed) {
    require(followed < kMostLinks, "{}: links to itself", path.string());
    const Path target = files::read_symlink(place, error);
    require(!error, "{}: cannot be read: {}", place.string(), error.message());
    place = place.parent_path() / target;  // an absolute target replaces all
    while (!place.has_filename() && place.has_relative_path()) place = place.parent_path();
  }
  return place;
}

bool is_mount_point(const Path& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) != 0) {
    return false;
  }
  // Kernels since 5.8 know. Before, only another file system showed it.
  if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  struct statx above {};
  return ::statx(AT_FDCWD, parent_of(path).c_str(), 0, STATX_BASIC_STATS, &above) == 0 &&
         (status.stx_dev_major != above.stx_dev_major ||
          status.stx_dev_minor != above.stx_dev_minor);
}

bool can_be_replaced(const Path& path) {
  if (is_mount_point(path)) return false;
  const Path parent = parent_of(path);
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return false;
  struct stat here {
  }, above{};
  if (::lstat(path.c_str(), &here) != 0 || ::stat(parent.c_str(), &above) != 0) return true;
  // In a folder such as /tmp only the owners of a file or of the folder may rename it.
  const uid_t user = ::geteuid();
  return (above.st_mode & S_ISVTX) == 0 || user == 0 || user == here.st_uid || user == above.st_uid;
}

void rewrite_file(const Path& to, const Path& from) {
  const MappedFile content(from);
  const int file = ::open(to.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  require_call(file, "{}: cannot open", to.string());
  const auto bytes = content.bytes();
  size_t done = 0;
  CallResult result = 0;
  while (done < bytes.size() && !result.failed()) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    result = written;
    if (!result.failed()) done += static_cast<size_t>(written);
  }
  if (!result.failed()) result = ::fsync(file);
  ::close(file);
  require_call(result, "{}: cannot write", to.string());
}

}  // namespace onebit
