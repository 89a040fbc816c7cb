#include "onebit/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "onebit/base/clock.h"
#include "onebit/base/error.h"
#include "onebit/base/log.h"

namespace onebit {
namespace {

constexpr double kPatienceSeconds = 3;

int open_file(const Path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  require(file >= 0, "{}: cannot create: {}", path.string(), std::strerror(errno));
  return file;
}

// Whether the locked file still has its name: its holder may have removed or renamed it.
bool has_name(int file, const Path& path) {
  struct stat locked = {}, named = {};
  return ::fstat(file, &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

}  // namespace

FolderLock::FolderLock(const Path& folder) {
  const Path path = folder / kLockName;
  file_ = open_file(path);
  // A process that was killed a moment ago may still hold the lock.
  for (const Stopwatch waited; waited.seconds() < kPatienceSeconds;) {
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
      if (has_name(file_, path)) return;
      ::close(file_);
      file_ = open_file(path);
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      log_warning(
          "{}: cannot be locked ({}): make sure that no other process writes to this folder",
          path.string(), std::strerror(errno));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::close(file_);
  fail("{}: another process is writing to this folder: let it end, or choose another --output",
       folder.string());
}

FolderLock::~FolderLock() {
  ::close(file_);
}

}  // namespace onebit
