// A new folder that appears whole or not at all.
#pragma once

#include <optional>
#include <system_error>

#include "onebit/base/file.h"
#include "onebit/base/folder_lock.h"

namespace onebit {

enum class Existing { kRefuse, kReplace };

class PartialFolder {
 public:
  // Files are written into path(), which is `folder` with kPartialSuffix appended; what an earlier,
  // killed writer left there is removed. Errors, after which nothing was changed: `folder` exists
  // and is not empty (unless it is to be replaced); another process writes it; something else has
  // the name of path().
  PartialFolder(Path folder, Existing existing);
  // Unless finish() was reached, removes everything.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const Path& path() const { return partial_; }
  // Renames the folder to its final name. Its files must be synced (FileWriter::finish()). Error: a
  // folder that must not be replaced has appeared there meanwhile.
  void finish();

 private:
  void take_over();
  void remove_content(std::error_code& error) const;

  Path folder_, partial_;
  Existing existing_;
  std::optional<FolderLock> lock_;
  bool finished_ = false;
};

}  // namespace onebit
