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
  // Files are written into path(), which is `folder` with kPartialSuffix appended; files left there
  // by an earlier, killed writer are removed. Errors, after which nothing has changed: `folder`
  // exists and is not empty (unless it is to be replaced); another process is writing it; path()
  // exists and is not a partial folder.
  PartialFolder(Path folder, Existing existing);
  // Removes everything unless finish() has completed.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const Path& path() const { return partial_; }
  // Renames the folder to its final name. Its files must be synced (FileWriter::finish()). Error: a
  // folder that must not be replaced has appeared under that name in the meantime.
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
