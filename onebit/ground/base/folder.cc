#include "onebit/ground/base/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/run_files.h"

namespace onebit {

namespace {

void sync_file(const Path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require_call(descriptor, "{}: cannot open", path.string());
  const CallResult synced = ::fsync(descriptor);
  ::close(descriptor);
  require_call(synced, "{}: cannot sync", path.string());
}

// A folder of the user may have the plain name.
Path free_name_beside(const Path& folder) {
  Path name = folder;
  name += kReplacedSuffix;
  while (std::filesystem::exists(std::filesystem::symlink_status(name))) {
    name = folder;
    name += fmt::format(".{:08x}{}", random_id() & 0xffffffff, kReplacedSuffix);
  }
  return name;
}

// For file systems that cannot exchange names. If the second rename fails, the old folder is moved
// back.
void move_aside(const Path& from, const Path& to, const Path& replaced) {
  rename_durably(to, replaced);
  try {
    rename_durably(from, to);
  } catch (const Error&) {
    rename_durably(replaced, to);
    throw;
  }
}

// Writes a file of one block and removes it. Returns errno, or 0.
int try_to_write(const Path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  constexpr std::array<char, 4096> kBlock{};
  const ssize_t written = ::write(descriptor, kBlock.data(), kBlock.size());
  int error = written < 0 ? errno : written < static_cast<ssize_t>(kBlock.size()) ? ENOSPC : 0;
  // Some network file systems report a full disk only here.
  if (error == 0 && ::fsync(descriptor) != 0) error = errno;
  ::close(descriptor);
  ::unlink(path.c_str());
  return error;
}

}  // namespace

void make_folder(const Path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "{}: cannot create the folder: {}", folder.string(), error.message());
}

Path nearest_folder(const Path& folder) {
  Path there = std::filesystem::absolute(folder).lexically_normal();
  if (!there.has_filename()) there = there.parent_path();
  std::error_code ignored;
  // Links are not followed: a dangling link keeps a folder from being created.
  while (!std::filesystem::exists(std::filesystem::symlink_status(there, ignored)) &&
         there.has_relative_path()) {
    there = there.parent_path();
  }
  return there;
}

std::string obstacle_to_writing(const Path& folder) {
  // A name that runs ignore if the file is left behind.
  const Path path = folder / fmt::format("{}{:016x}", run_files::kDiskToken, random_id());
  const int error = try_to_write(path);
  if (error == 0) return "";
  return fmt::format("cannot create a file in {}: {}", folder.string(), reason_of(error));
}

void require_writable(const Path& folder) {
  const Path there = nearest_folder(folder);
  std::error_code ignored;
  require(std::filesystem::is_directory(there, ignored),
          "{}: cannot be created: {} is not a folder", folder.string(), there.string());
  const std::string obstacle = obstacle_to_writing(there);
  require(obstacle.empty(), "{}: cannot be written to: {}", folder.string(), obstacle);
}

void sync_tree(const Path& folder) {
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.is_directory()) {
      sync_folder(item.path());
    } else {
      sync_file(item.path());
    }
  }
  sync_folder(folder);
}

void replace_folder(const Path& from, const Path& to) {
  if (!std::filesystem::exists(to)) return rename_durably(from, to);
  const Path replaced = free_name_beside(to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    rename_durably(from, replaced);
  } else {
    move_aside(from, to, replaced);
  }
  std::filesystem::remove_all(replaced);
}

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
