// A lock on a folder, so that only one process at a time writes to it.
#pragma once

#include <string_view>

#include "onebit/ground/base/file.h"

namespace onebit {

inline constexpr const char* kLockName = "lock";  // name of the lock file in the folder

// Held until destruction or the end of the process, however it ends. The file `lock` stays. Error:
// another process of this machine still holds the lock after some seconds (for other machines it
// depends on the shared file system). A file system without locks is a warning.
class FolderLock {
 public:
  // `mark` becomes the content of an empty lock file.
  explicit FolderLock(const Path& folder, std::string_view mark = "");
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

// Error: another process still holds the lock after some seconds. The lock is not acquired, and a
// folder that does not exist is not locked.
void refuse_locked(const Path& folder);

}  // namespace onebit
