// A file that appears whole or not at all.
#pragma once

#include <string_view>

#include "onebit/ground/base/file.h"

namespace onebit {

// The suffix of a file or folder that is still being written. One that exists without a writer was
// left by an interruption.
inline constexpr std::string_view kPartialSuffix = ".partial";
Path partial_path(Path path);

class PartialFile {
 public:
  // The file is written beside `path` (FileWriter::Kind::kTemporary), with kPartialSuffix appended.
  // If `path` is a link, it is written beside its target. It takes over the permissions of an
  // existing file. What is_written_into() is written at once. Errors: `path` is a folder, or the
  // file cannot be created.
  explicit PartialFile(const Path& path);

  void write(std::string_view text) { writer_.write(text); }
  void write(const void* data, size_t size_bytes) { writer_.write(data, size_bytes); }
  // Overwrites bytes already written, for headers whose content is known last.
  void write_at(uint64_t offset, const void* data, size_t size_bytes) {
    writer_.write_at(offset, data, size_bytes);
  }
  void overwrite_start(std::string_view text) { write_at(0, text.data(), text.size()); }
  uint64_t size_bytes() const { return writer_.size_bytes(); }
  // Syncs and renames to `path`. A file that is mounted there is rewritten, since it cannot be
  // replaced. Without this call `path` is unchanged and the partial file is removed. Error: cannot
  // be renamed. The message names the partial file, which is kept.
  void finish();

 private:
  Path path_;
  bool written_into_;
  FileWriter writer_;
};

}  // namespace onebit
