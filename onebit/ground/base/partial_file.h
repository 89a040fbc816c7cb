// Files and folders that appear whole or not at all, and the place that a path of the user means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/folder.h"

namespace onebit {

// Follows links, also to a place where nothing is yet. Error: links that lead to each other.
Path where_it_leads(const Path& path);

// Whether a disk, a folder or a file is mounted at `path`: it can be written to, but neither
// renamed nor replaced.
bool is_mount_point(const Path& path);

// Whether a folder or file that is written beside `path`, which is no link, can be renamed to it
// at the end: names in its parent can be changed by this process.
bool can_be_replaced(const Path& path);

// Writes the content of `from` into the existing file `to`, whose place stays what it is.
void rewrite_file(const Path& to, const Path& from);

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

enum class Existing { kRefuse, kReplace };

// Whether nothing is at `folder`, or a folder without files: what a new disk (lost+found) or an
// interrupted PartialFolder contains does not count. A link is followed.
bool is_free_for_folder(const Path& folder);

// Error: `folder` contains something that is none of `names`, which a writer that replaces the
// folder would delete. A lock and what is_free_for_folder() does not count are no error.
void require_only(const Path& folder, const std::vector<std::string>& names);

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
