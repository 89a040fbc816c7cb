// A lock on a folder, so that only one process at a time writes to it.
#pragma once

#include "onebit/base/file.h"

namespace onebit {

inline constexpr const char* kLockName = "lock";  // of the file in the folder

// Held until destruction or the end of the process, however it ends. The file `lock` stays in the
// folder. Errors: another process holds it for some seconds (of this machine; whether another
// machine's is seen depends on the shared file system). A file system without locks: a warning.
class FolderLock {
 public:
  explicit FolderLock(const Path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

// Error: another process holds the lock for some seconds. It is not taken, and a folder that is not
// there has none.
void refuse_locked(const Path& folder);

}  // namespace onebit
