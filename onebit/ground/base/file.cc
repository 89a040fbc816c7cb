#include "onebit/ground/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/lost_maps.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit {

namespace {

constexpr size_t kWriteBufferBytes = size_t{1} << 20;
constexpr mode_t kMode = 0666;  // of which the umask takes its share
constexpr int kNames = 100;     // tried for a temporary file

size_t regular_file_size(const OpenFile& file, const Path& path) {
  struct stat status {};
  require_call(::fstat(file.get(), &status), "{}: cannot read its size", path.string());
  require(!S_ISDIR(status.st_mode), "{}: is a folder, expected a file", path.string());
  return static_cast<size_t>(status.st_size);
}

// A name that is free in all likelihood: "model.safetensors.1f0c52a9.partial" for
// "model.safetensors.partial".
Path name_beside(Path path) {
  const std::string ending = fmt::format(".{:08x}", random_id() & 0xffffffff);
  const Path extension = path.extension();
  return path.replace_extension(ending) += extension;
}

// The file that the user knows: a temporary one, or one in a temporary folder (PartialFolder), has
// this name at the end.
std::string shown(const Path& given, FileWriter::Kind kind) {
  Path path;
  for (auto part = given.begin(); part != given.end(); ++part) {
    std::string name = part->string();
    const bool is_file = std::next(part) == given.end();
    if (name.ends_with(kPartialSuffix) && (!is_file || kind == FileWriter::Kind::kTemporary)) {
      name.resize(name.size() - kPartialSuffix.size());
    }
    if (!name.empty() || is_file) path /= name;
  }
  return path.string();
}

void write_all(int descriptor, const char* data, size_t size, const std::string& place) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, data, size);
    const CallResult result = written;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot write", place);
    data += written;
    size -= static_cast<size_t>(written);
  }
}

}  // namespace

std::string read_file(const Path& path) {
  const OpenFile file(path, O_RDONLY, "open");
  // One extra byte, so that the end of the file is detected without growing the buffer.
  std::string content(regular_file_size(file, path) + 1, '\0');
  size_t used = 0;
  for (;;) {
    if (used == content.size()) content.resize(content.size() + 4096);
    const ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    const CallResult result = got;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot read", path.string());
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

namespace {

// A clone of a model's repository without Git LFS has such texts in place of its large files.
void refuse_git_lfs_pointer(const Path& path, std::string_view content) {
  constexpr size_t kLongestPointer = 1024;  // as the specification of Git LFS has it
  require(content.size() >= kLongestPointer ||
              !content.starts_with("version https://git-lfs.github.com/spec/"),
          "{}: is a Git LFS pointer, not the file itself: run `git lfs pull` in its repository, or "
          "download the file",
          path.string());
}

}  // namespace

MappedFile::MappedFile(const Path& path) : path_(path) {
  require_regular_file(path);
  const OpenFile file(path, O_RDONLY, "open");
  size_bytes_ = regular_file_size(file, path);
  if (size_bytes_ == 0) return;
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  require_call(mapped != MAP_FAILED, "{}: cannot map into memory", path.string());
  data_ = static_cast<const std::byte*>(mapped);
  remember_map(data_, size_bytes_, path_.native());
  try {
    refuse_git_lfs_pointer(path, {reinterpret_cast<const char*>(data_), size_bytes_});
  } catch (...) {
    *this = MappedFile();  // no destructor runs
    throw;
  }
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

FileWriter::FileWriter(const Path& path, Kind kind) : given_(path), path_(path), kind_(kind) {
  if (kind == Kind::kExisting) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    require_call(descriptor_, "{}: cannot open", path.string());
  } else {
    create();
  }
  buffer_.reserve(kWriteBufferBytes);
}

void FileWriter::create() {
  // The name is given through /proc. Without it, what has been written would be lost at the end.
  if (kind_ == Kind::kTemporary && ::access("/proc/self/fd", X_OK) == 0) {
    const Path folder = given_.has_parent_path() ? given_.parent_path() : Path(".");
    descriptor_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kMode);
    has_name_ = descriptor_ < 0;
    if (!has_name_) return;
  }
  for (int tried = 1;; ++tried) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    const CallResult result = descriptor_;
    if (!result.failed()) return;
    const bool is_taken = kind_ == Kind::kTemporary && result.error() == EEXIST && tried < kNames;
    if (!is_taken) require_call(result, "{}: cannot create", shown(given_, kind_));
    path_ = name_beside(given_);
  }
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) close(false);
}

// Somebody else may have put another file in the place of this one.
void FileWriter::close(bool keep) {
  struct stat ours {
  }, named{};
  const bool is_ours = kind_ != Kind::kExisting && has_name_ && ::fstat(descriptor_, &ours) == 0 &&
                       ::lstat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
                       ours.st_dev == named.st_dev;
  const CallResult closed = ::close(std::exchange(descriptor_, -1));
  if (is_ours && (!keep || closed.failed())) ::unlink(path_.c_str());
  if (keep) require_call(closed, "{}: cannot close", shown(given_, kind_));
}

void FileWriter::take_permissions_of(const Path& path) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0 || !S_ISREG(old.st_mode)) return;
  // Only root can give the owner. Without the group, its permissions would be another group's.
  [[maybe_unused]] const int owner = ::fchown(descriptor_, old.st_uid, gid_t(-1));
  const bool same_group = ::fchown(descriptor_, uid_t(-1), old.st_gid) == 0;
  ::fchmod(descriptor_, old.st_mode & (same_group ? 0777 : 0707));
}

void FileWriter::write(const void* data, size_t size_bytes) {
  if (buffer_.size() + size_bytes > kWriteBufferBytes) flush_buffer();
  if (size_bytes >= kWriteBufferBytes) {
    write_all(descriptor_, static_cast<const char*>(data), size_bytes, shown(given_, kind_));
  } else {
    buffer_.append(static_cast<const char*>(data), size_bytes);
  }
  size_bytes_ += size_bytes;
}

void FileWriter::write_at(uint64_t offset, const void* data, size_t size_bytes) {
  ONEBIT_INVARIANT(offset + size_bytes <= size_bytes_);
  require(kind_ != Kind::kExisting,
          "{}: this format needs an ordinary file, because its header is completed at the end",
          shown(given_, kind_));
  flush_buffer();
  const auto* bytes = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t written = ::pwrite(descriptor_, bytes, size_bytes, static_cast<off_t>(offset));
    const CallResult result = written;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot write", shown(given_, kind_));
    bytes += written;
    offset += static_cast<uint64_t>(written);
    size_bytes -= static_cast<size_t>(written);
  }
}

void FileWriter::flush_buffer() {
  write_all(descriptor_, buffer_.data(), buffer_.size(), shown(given_, kind_));
  buffer_.clear();
}

void FileWriter::give_name() {
  const std::string opened = "/proc/self/fd/" + std::to_string(descriptor_);
  for (int tried = 1; !has_name_; ++tried) {
    const CallResult linked =
        ::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW);
    has_name_ = !linked.failed();
    if (has_name_) return;
    const bool is_taken = linked.error() == EEXIST && tried < kNames;
    if (!is_taken) require_call(linked, "{}: cannot create", shown(given_, kind_));
    path_ = name_beside(given_);
  }
}

void FileWriter::finish() {
  flush_buffer();
  // Pipes and terminals cannot be synced.
  if (kind_ != Kind::kExisting) {
    require_call(::fsync(descriptor_), "{}: cannot write to the disk", shown(given_, kind_));
  }
  give_name();
  close(true);
}

bool is_written_into(const Path& path) {
  namespace files = std::filesystem;
  const Path folder = path.parent_path();  // /dev/shm is excluded: it holds ordinary files
  if (folder == "/dev" || folder == "/dev/fd") return true;
  std::error_code ignored;
  const files::file_status status = files::status(path, ignored);
  return files::exists(status) && !files::is_regular_file(status) && !files::is_directory(status);
}

void write_file_atomically(const Path& path, std::string_view content) {
  PartialFile file(path);
  file.write(content);
  file.finish();
}

void sync_folder(const Path& folder) {
  const Path target = folder.empty() ? Path(".") : folder;
  const OpenFile descriptor(target, O_RDONLY | O_DIRECTORY, "open the folder");
  require_call(::fsync(descriptor.get()), "{}: cannot sync the folder", target.string());
}

void rename_durably(const Path& from, const Path& to) {
  require_call(::rename(from.c_str(), to.c_str()), "{}: cannot rename to {}", from.string(),
               to.string());
  sync_folder(to.parent_path());
}

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no file";
}

}  // namespace

void require_regular_file(const Path& path, uint64_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  require(S_ISREG(status.st_mode), "{}: is {}{}, a file was expected", path.string(),
          std::filesystem::is_symlink(path) ? "a link to " : "", kind_of(status.st_mode));
  require(static_cast<uint64_t>(status.st_size) <= most,
          "{}: has {} bytes, at most {} were expected: is it another file?", path.string(),
          status.st_size, most);
}

std::string read_regular_file(const Path& path, uint64_t most) {
  require_regular_file(path, most);
  std::string content = read_file(path);
  refuse_git_lfs_pointer(path, content);
  return content;
}

namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

// "16 MiB" for a limit of whole mebibytes.
std::string in_words(uint64_t bytes) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  return bytes % kMebibyte == 0 ? fmt::format("{} MiB", bytes / kMebibyte)
                                : fmt::format("{} bytes", bytes);
}

[[noreturn]] void refuse(const std::string& name, const FileKind& kind) {
  fail("{}: has more than {}, the most that {} may have: is it another file?", name,
       in_words(kind.most_bytes), kind.name);
}

std::string read_all(int descriptor, const std::string& name, const FileKind& kind) {
  std::string content;
  for (;;) {
    const size_t used = content.size();
    content.resize(used + kBlockBytes);
    const ssize_t got = ::read(descriptor, content.data() + used, kBlockBytes);
    const CallResult result = got;
    content.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "{}: cannot read", name);
    if (got == 0) return content;
    if (content.size() > kind.most_bytes) refuse(name, kind);
  }
}

}  // namespace

std::string read_given_file(const Path& path, const FileKind& kind) {
  const OpenFile file(path, O_RDONLY, "open");
  struct stat status {};
  require_call(::fstat(file.get(), &status), "{}: cannot read its size", path.string());
  require(!S_ISDIR(status.st_mode), "{}: is a folder, {} was expected", path.string(), kind.name);
  if (static_cast<uint64_t>(status.st_size) > kind.most_bytes) refuse(path.string(), kind);
  std::string content = read_all(file.get(), path.string(), kind);
  refuse_git_lfs_pointer(path, content);
  return content;
}

}  // namespace onebit
