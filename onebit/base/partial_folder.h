// A new folder that is there whole or not at all.
#pragma once

#include <optional>
#include <system_error>

#include "onebit/base/file.h"
#include "onebit/base/folder_lock.h"

namespace onebit {

enum class Existing { kRefuse, kReplace };

class PartialFolder {
 public:
  // Files are to be written into path(), which is `folder` with ".partial" after it; what an
  // earlier, killed writer left there is removed. Errors, and nothing is touched: `folder` exists
  // and is not empty (unless it is to be replaced); another process writes it; what has the name of
  // path() was not left by a writer.
  PartialFolder(Path folder, Existing existing);
  // Unless finish() was reached, removes everything.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const Path& path() const { return partial_; }
  // Gives the folder its name, for good. Its files must be synced (FileWriter::finish()). Error:
  // what is not to be replaced has come to stand there meanwhile.
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
