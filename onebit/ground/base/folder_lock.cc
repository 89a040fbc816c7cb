#include "onebit/ground/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/system_call.h"

namespace onebit {
namespace {

constexpr double kPatienceSeconds = 3;

int open_file(const Path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  require_call(file, "{}: cannot create", path.string());
  return file;
}

// Whether the locked file still has its name: its holder may have removed or renamed it.
bool has_name(int file, const Path& path) {
  struct stat locked = {}, named = {};
  return ::fstat(file, &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

void put_mark(int file, std::string_view mark, const Path& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0 || status.st_size != 0) return;
  require_call(::pwrite(file, mark.data(), mark.size(), 0), "{}: cannot write", path.string());
}

[[noreturn]] void refuse(const Path& folder) {
  fail(
      "{}: another process is writing to this folder: wait for it to finish, or choose another "
      "--output",
      folder.string());
}

// A process that was killed a moment ago may still hold a lock.
template <typename Ready>
bool wait_until(const Ready& ready) {
  for (const Stopwatch waited; waited.seconds() < kPatienceSeconds;) {
    if (ready()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace

FolderLock::FolderLock(const Path& folder, std::string_view mark) {
  const Path path = folder / kLockName;
  file_ = open_file(path);
  const bool settled = wait_until([&] {
    while (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
      if (has_name(file_, path)) return true;
      ::close(file_);
      file_ = open_file(path);
    }
    const int reason = errno;
    if (reason == EWOULDBLOCK || reason == EINTR) return false;
    log_warning("{}: cannot be locked ({}): make sure that no other process writes to this folder",
                path.string(), reason_of(reason));
    return true;
  });
  if (settled) {
    put_mark(file_, mark, path);
    return;
  }
  ::close(file_);
  refuse(folder);
}

FolderLock::~FolderLock() {
  ::close(file_);
}

void refuse_locked(const Path& folder) {
  // Opening a pipe would wait for a writer.
  const int file = ::open((folder / kLockName).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  const bool is_free =
      wait_until([&] { return ::flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK; });
  ::close(file);
  if (!is_free) refuse(folder);
}

}  // namespace onebit
