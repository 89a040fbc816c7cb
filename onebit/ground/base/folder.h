// Puts whole folders in place: synced to the disk, and exchanged so that one of the two exists at
// every moment.
#pragma once

#include <string>
#include <string_view>

#include "onebit/ground/base/file.h"

namespace onebit {

// The suffix that replace_folder() gives the old folder while it removes it. A folder with this
// suffix was left by an interruption and may be removed.
inline constexpr std::string_view kReplacedSuffix = ".replaced";

// Creates a folder and its parents if they do not exist. Error: cannot be created.
void make_folder(const Path& folder);

// Returns the absolute path of `folder`, or of its nearest parent that exists.
Path nearest_folder(const Path& folder);

// Creates, writes and removes a file in `folder`, which must exist, to find out early whether
// writing is possible. Returns the reason why it is not, or an empty string if it is.
std::string obstacle_to_writing(const Path& folder);
// Does the same in nearest_folder(folder). Error: writing is not possible.
void require_writable(const Path& folder);

// Syncs all files below `folder`, and the folders themselves, to the disk.
void sync_tree(const Path& folder);

// Renames the folder `from` to `to`, which may exist, and removes the old `to`. This is one step if
// the file system can exchange two names. Otherwise the old folder is moved aside first, to a free
// name with kReplacedSuffix. A link at `to` is replaced (see where_it_leads()). Error: cannot be
// renamed, and `to` is unchanged.
void replace_folder(const Path& from, const Path& to);

// A lock on a folder, so that only one process at a time writes to it.
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
