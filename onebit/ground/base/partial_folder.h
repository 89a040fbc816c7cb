// A new folder that appears whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <system_error>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/folder_lock.h"

namespace onebit {

enum class Existing { kRefuse, kReplace };

// Whether nothing is at `folder`, or a folder without files: what a new disk (lost+found) or an
// interrupted PartialFolder contains does not count. A link is followed.
bool is_free_for_folder(const Path& folder);

class PartialFolder {
 public:
  // Files are written into path(), which is `folder` (or the target of a link) with kPartialSuffix
  // appended. A folder that exists and cannot be replaced as a whole, because a disk is mounted
  // there or its parent is not writable, is filled instead: path() is then `folder`/.partial. What
  // an earlier, killed writer left in path() is removed.
  // Errors, after which nothing has changed: `folder` is not free (unless it is to be replaced), it
  // can neither be created nor written to, another process is writing it, or path() exists and is
  // not a partial folder of onebit's.
  PartialFolder(const Path& folder, Existing existing);
  // Removes everything unless finish() was called.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const Path& path() const { return partial_; }
  // Renames the folder to its final name, or moves its files up, `last` at the end: without this
  // file the folder counts as incomplete. The files must be synced (FileWriter::finish()). Error:
  // not possible any more, for example because a folder that must not be replaced has appeared.
  // The message names path(), which is kept.
  void finish(const std::string& last);

 private:
  void choose_place(const Path& given);
  void take_over(const Path& given);
  void remove_content(std::error_code& error) const;
  void put_in_place(const std::string& last);
  void fill(const std::string& last);
  void move_aside(const Path& replaced, const std::string& last) const;

  Path folder_, partial_;
  Existing existing_;
  bool fills_ = false;  // path() is in `folder`
  std::optional<FolderLock> lock_;
  bool finished_ = false;
};

}  // namespace onebit
