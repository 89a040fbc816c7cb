#include "onebit/base/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "onebit/base/error.h"

namespace onebit {
namespace {

void sync_file(const Path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(descriptor >= 0, "{}: cannot open: {}", path.string(), std::strerror(errno));
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  require(result == 0, "{}: cannot sync: {}", path.string(), std::strerror(reason));
}

// For file systems that cannot exchange names. If the second renaming fails, the old folder is
// moved back.
void move_aside(const Path& from, const Path& to, const Path& replaced) {
  rename_durably(to, replaced);
  try {
    rename_durably(from, to);
  } catch (const Error&) {
    rename_durably(replaced, to);
    throw;
  }
}

}  // namespace

void make_folder(const Path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "{}: cannot create the folder: {}", folder.string(), error.message());
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
  Path replaced = to;
  replaced += kReplacedSuffix;
  std::filesystem::remove_all(replaced);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    rename_durably(from, replaced);
  } else {
    move_aside(from, to, replaced);
  }
  std::filesystem::remove_all(replaced);
}

}  // namespace onebit
