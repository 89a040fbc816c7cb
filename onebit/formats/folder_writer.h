// A new folder that is there whole or not at all.
#pragma once

#include "onebit/base/file.h"

namespace onebit::formats {

class FolderWriter {
 public:
  // Files are to be written into path(), which is `folder` with ".partial" after it; what an
  // earlier, killed writer left there is removed. Error: `folder` exists and is not an empty
  // folder.
  explicit FolderWriter(Path folder);
  // Unless finish() was reached, removes everything.
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  const Path& path() const { return partial_; }
  // Gives the folder its name, for good. Its files must be synced (FileWriter::finish()).
  void finish();

 private:
  Path folder_, partial_;
  bool finished_ = false;
};

}  // namespace onebit::formats
