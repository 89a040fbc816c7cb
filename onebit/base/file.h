// Reading, mapping, writing and atomic replacement of files, with one clear error for each failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace onebit {

using Path = std::filesystem::path;

// Returns the whole file. Errors: missing, unreadable, a directory.
std::string read_file(const Path& path);

// A read-only memory map of a whole file; an empty file maps to an empty span. Error: missing,
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

// A new file that is written front to back. Every call throws on failure (a full disk included)
// with the path and the reason. The destructor removes the file unless finish() has completed.
class FileWriter {
 public:
  // From when on the file has its name. kFinished: from finish() on, where the file system has
  // files without a name (O_TMPFILE), so that a process that is killed leaves nothing; otherwise as
  // kBegun.
  enum class NamedFrom { kBegun, kFinished };

  explicit FileWriter(const Path& path, NamedFrom named_from = NamedFrom::kBegun);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t size_bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Overwrites bytes already written, for headers whose content is known last.
  void write_at(uint64_t offset, const void* data, size_t size_bytes);
  uint64_t size_bytes() const { return size_bytes_; }
  // Flushes to the disk (fsync) and closes.
  void finish();

 private:
  void flush_buffer();
  void give_name();

  Path path_;
  int descriptor_ = -1;
  bool has_name_ = true;
  std::string buffer_;
  uint64_t size_bytes_ = 0;
};

// Writes beside `path`, syncs and renames: readers see the old content or the new, never a part.
void write_file_atomically(const Path& path, std::string_view content);

// Syncs `folder`, so that files renamed or created inside it survive a power failure.
void sync_folder(const Path& folder);

// Renames `from` to `to` (same file system) and syncs the parent folder. If `from` is a folder,
// `to` must not exist.
void rename_durably(const Path& from, const Path& to);

}  // namespace onebit
