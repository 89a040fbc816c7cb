// Reading, mapping, writing and atomic replacement of files, with one clear error for each failure.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "onebit/ground/base/error.h"

namespace onebit {

using Path = std::filesystem::path;

// A file descriptor that closes itself.
class OpenFile {
 public:
  // Error: "PATH: cannot PURPOSE", with the system's reason.
  OpenFile(const Path& path, int flags, const char* purpose)
      : value_(::open(path.c_str(), flags | O_CLOEXEC)) {
    require_call(value_, "{}: cannot {}", path.string(), purpose);
  }
  ~OpenFile() { ::close(value_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

// Returns the whole file. Errors: missing, unreadable, a directory.
std::string read_file(const Path& path);

// A read-only memory map of a whole file. An empty file maps to an empty span. Error: missing,
// unreadable, a folder, a device or a pipe.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const Path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  const std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// A file that is written front to back. Every call throws on failure (a full disk included) with
// the path and the reason. The destructor removes the file unless finish() has completed. Nothing
// is truncated or removed that this object did not create.
class FileWriter {
 public:
  // kNew: Error if `path` exists. kTemporary: a file that will be renamed: if `path` exists,
  // path() is another name beside it. Where the file system has files without a name (O_TMPFILE),
  // the file has a name only from finish() on, so that a process that is killed leaves nothing.
  // kExisting: a pipe, a terminal or another device, which is written into and stays.
  enum class Kind { kNew, kTemporary, kExisting };

  explicit FileWriter(const Path& path, Kind kind = Kind::kNew);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Gives the file the owner and the permissions of `path`, as far as this process may.
  void take_permissions_of(const Path& path);
  void write(const void* data, size_t size_bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Overwrites bytes already written, for headers whose content is known last. Error: kExisting.
  void write_at(uint64_t offset, const void* data, size_t size_bytes);
  uint64_t size_bytes() const { return size_bytes_; }
  // Flushes to the disk (fsync) and closes.
  void finish();
  // The name of the file. A temporary one has it after finish().
  const Path& path() const { return path_; }

 private:
  void create();
  void flush_buffer();
  void give_name();
  void close(bool keep);

  Path given_, path_;
  Kind kind_;
  int descriptor_ = -1;
  bool has_name_ = true;
  std::string buffer_;
  uint64_t size_bytes_ = 0;
};

// Writes beside `path`, syncs and renames (PartialFile): readers see the old content or the new,
// never a part.
void write_file_atomically(const Path& path, std::string_view content);

// Syncs `folder`, so that files renamed or created inside it survive a power failure.
void sync_folder(const Path& folder);

// Whether a pipe, a terminal or another device is at `path`, or what /dev/stdout leads to: it must
// be written into, not replaced.
bool is_written_into(const Path& path);

// Renames `from` to `to` (same file system) and syncs the parent folder. If `from` is a folder,
// `to` must not exist.
void rename_durably(const Path& from, const Path& to);

// Files of a model, a checkpoint or a store, which others may have made. An archive can contain a
// link to /dev/zero, which has no end, or a pipe, which nobody writes into.
inline constexpr uint64_t kMaxJsonBytes = uint64_t{256} << 20;

// Error: `path` is a device, a pipe or a socket, or a link to one, or has more bytes than `most`.
// Does nothing if it does not exist: whoever opens it reports that.
void require_regular_file(const Path& path, uint64_t most = UINT64_MAX);

// read_file() of such a file.
std::string read_regular_file(const Path& path, uint64_t most);

// Files that a user names, such as a recipe. They may be pipes, --recipe <(...), whose size only
// reading shows, and a device such as /dev/zero has no end.

// What a file is expected to be ("a recipe"), and the largest size that makes sense.
struct FileKind {
  const char* name;
  uint64_t most_bytes;
};

// Returns the whole file. Errors: missing, unreadable, a folder, more bytes than its kind has.
std::string read_given_file(const Path& path, const FileKind& kind);

}  // namespace onebit
