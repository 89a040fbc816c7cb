// A file that appears whole or not at all.
#pragma once

#include <string_view>

#include "onebit/base/file.h"

namespace onebit {

// The suffix of a file or folder that is still being written. One that exists without a writer was
// left by an interruption.
inline constexpr std::string_view kPartialSuffix = ".partial";
Path partial_path(Path path);

class PartialFile {
 public:
  // The file is written beside `path`, with kPartialSuffix appended or without a name
  // (FileWriter::NamedFrom::kFinished); if `path` is a link, beside its target. Error: cannot be
  // created.
  explicit PartialFile(const Path& path);

  void write(std::string_view text) { writer_.write(text); }
  // Overwrites the first bytes already written, for headers whose content is known last.
  void overwrite_start(std::string_view text) { writer_.write_at(0, text.data(), text.size()); }
  uint64_t size_bytes() const { return writer_.size_bytes(); }
  // Syncs and renames to `path`. Without this call, or after its error, `path` is unchanged and the
  // partial file is removed.
  void finish();

 private:
  Path path_;
  FileWriter writer_;
};

}  // namespace onebit
