// A file that appears whole or not at all.
#pragma once

#include <string_view>

#include "onebit/base/file.h"

namespace onebit {

// The ending of a file or folder that is still being written: one that lies there with it was left
// by an interruption.
inline constexpr std::string_view kPartialSuffix = ".partial";
Path partial_path(Path path);

class PartialFile {
 public:
  // Written beside `path`, with kPartialSuffix appended; where `path` is a link, beside what it
  // leads to. Error: cannot be created.
  explicit PartialFile(const Path& path);

  void write(std::string_view text) { writer_.write(text); }
  // Overwrites the first bytes already written, for headers that are known last.
  void overwrite_start(std::string_view text) { writer_.write_at(0, text.data(), text.size()); }
  uint64_t size_bytes() const { return writer_.size_bytes(); }
  // Syncs and renames to `path`. Without it, or after its error, what was at `path` stays and
  // nothing is beside it.
  void finish();

 private:
  Path path_;
  FileWriter writer_;
};

}  // namespace onebit
