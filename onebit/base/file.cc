#include "onebit/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "onebit/base/error.h"
#include "onebit/base/lost_maps.h"
#include "onebit/base/partial_file.h"
#include "onebit/base/regular_file.h"

namespace onebit {
namespace {

constexpr size_t kWriteBufferBytes = size_t{1} << 20;

std::string system_reason() {
  return std::strerror(errno);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const Path& path, int flags, const char* purpose)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    require(value_ >= 0, "{}: cannot {}: {}", path.string(), purpose, system_reason());
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

size_t regular_file_size(const Descriptor& file, const Path& path) {
  struct stat status {};
  require(::fstat(file.get(), &status) == 0, "{}: cannot read its size: {}", path.string(),
          system_reason());
  require(!S_ISDIR(status.st_mode), "{}: is a folder, expected a file", path.string());
  return static_cast<size_t>(status.st_size);
}

void write_all(int descriptor, const char* data, size_t size, const Path& path) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, data, size);
    if (written < 0 && errno == EINTR) continue;
    require(written > 0, "{}: cannot write: {}", path.string(),
            errno == ENOSPC ? "the disk is full; free space or choose another output folder"
                            : system_reason());
    data += written;
    size -= static_cast<size_t>(written);
  }
}

}  // namespace

std::string read_file(const Path& path) {
  const Descriptor file(path, O_RDONLY, "open");
  // One extra byte, so that the end of the file is detected without growing the buffer.
  std::string content(regular_file_size(file, path) + 1, '\0');
  size_t used = 0;
  for (;;) {
    if (used == content.size()) content.resize(content.size() + 4096);
    const ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, "{}: cannot read: {}", path.string(), system_reason());
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

MappedFile::MappedFile(const Path& path) : path_(path) {
  require_regular_file(path);
  const Descriptor file(path, O_RDONLY, "open");
  size_bytes_ = regular_file_size(file, path);
  if (size_bytes_ == 0) return;
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  require(mapped != MAP_FAILED, "{}: cannot map into memory: {}", path.string(), system_reason());
  data_ = static_cast<const std::byte*>(mapped);
  remember_map(data_, size_bytes_, path_.native());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_map(data_);
  ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

FileWriter::FileWriter(const Path& path, NamedFrom named_from) : path_(path) {
  // The name is given through /proc; without it, what has been written would be lost at the end.
  if (named_from == NamedFrom::kFinished && ::access("/proc/self/fd", X_OK) == 0) {
    const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
    descriptor_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
    has_name_ = descriptor_ < 0;
  }
  if (has_name_) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  require(descriptor_ >= 0, "{}: cannot create: {}", path.string(), system_reason());
  buffer_.reserve(kWriteBufferBytes);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (has_name_) ::unlink(path_.c_str());
}

void FileWriter::write(const void* data, size_t size_bytes) {
  if (buffer_.size() + size_bytes > kWriteBufferBytes) flush_buffer();
  if (size_bytes >= kWriteBufferBytes) {
    write_all(descriptor_, static_cast<const char*>(data), size_bytes, path_);
  } else {
    buffer_.append(static_cast<const char*>(data), size_bytes);
  }
  size_bytes_ += size_bytes;
}

void FileWriter::write_at(uint64_t offset, const void* data, size_t size_bytes) {
  ONEBIT_INVARIANT(offset + size_bytes <= size_bytes_);
  flush_buffer();
  const ssize_t written = ::pwrite(descriptor_, data, size_bytes, static_cast<off_t>(offset));
  require(written == static_cast<ssize_t>(size_bytes), "{}: cannot write: {}", path_.string(),
          system_reason());
}

void FileWriter::flush_buffer() {
  write_all(descriptor_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void FileWriter::give_name() {
  const std::string opened = "/proc/self/fd/" + std::to_string(descriptor_);
  ::unlink(path_.c_str());  // one left by an interruption
  require(::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0,
          "{}: cannot create: {}", path_.string(), system_reason());
  has_name_ = true;
}

void FileWriter::finish() {
  flush_buffer();
  require(::fsync(descriptor_) == 0, "{}: cannot write to the disk: {}", path_.string(),
          system_reason());
  if (!has_name_) give_name();
  if (::close(std::exchange(descriptor_, -1)) == 0) return;
  const std::string reason = system_reason();
  ::unlink(path_.c_str());
  fail("{}: cannot close: {}", path_.string(), reason);
}

namespace {

// A pipe, a terminal, /dev/null or the target of /dev/stdout must be written in place, not
// replaced.
bool is_written_into(const Path& path, const std::filesystem::file_status& status) {
  const Path folder = path.parent_path();  // /dev/shm is excluded: it holds ordinary files
  return folder == "/dev" || folder == "/dev/fd" ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status));
}

void write_into(const Path& path, std::string_view content) {
  const Descriptor descriptor(path, O_WRONLY | O_APPEND, "open");
  write_all(descriptor.get(), content.data(), content.size(), path);
}

}  // namespace

void write_file_atomically(const Path& given, std::string_view content) {
  namespace files = std::filesystem;
  std::error_code ignored;
  const files::file_status status = files::status(given, ignored);
  require(given.has_filename() && !files::is_directory(status),
          "\"{}\": not a valid output file name{}", given.string(),
          files::is_directory(status) ? ": it is a folder" : "");
  if (is_written_into(given, status)) return write_into(given, content);
  PartialFile file(given);
  file.write(content);
  file.finish();
}

void sync_folder(const Path& folder) {
  const Path target = folder.empty() ? Path(".") : folder;
  const Descriptor descriptor(target, O_RDONLY | O_DIRECTORY, "open the folder");
  require(::fsync(descriptor.get()) == 0, "{}: cannot sync the folder: {}", target.string(),
          system_reason());
}

void rename_durably(const Path& from, const Path& to) {
  const bool renamed = ::rename(from.c_str(), to.c_str()) == 0;
  const int reason = errno;  // saved before formatting the message can change it
  require(renamed, "{}: cannot rename to {}: {}", from.string(), to.string(),
          std::strerror(reason));
  sync_folder(to.parent_path());
}

}  // namespace onebit
