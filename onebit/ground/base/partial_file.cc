#include "onebit/ground/base/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"

namespace onebit {

namespace {

constexpr int kMostLinks = 40;  // as in the kernel

Path parent_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

}  // namespace

Path where_it_leads(const Path& path) {
  namespace files = std::filesystem;
  std::error_code error;
  Path place = path;
  for (int followed = 0; files::is_symlink(files::symlink_status(place, error)); ++followed) {
    require(followed < kMostLinks, "{}: links to itself", path.string());
    const Path target = files::read_symlink(place, error);
    require(!error, "{}: cannot be read: {}", place.string(), error.message());
    place = place.parent_path() / target;  // an absolute target replaces all
    while (!place.has_filename() && place.has_relative_path()) place = place.parent_path();
  }
  return place;
}

bool is_mount_point(const Path& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) != 0) {
    return false;
  }
  // Kernels since 5.8 know. Before, only another file system showed it.
  if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  struct statx above {};
  return ::statx(AT_FDCWD, parent_of(path).c_str(), 0, STATX_BASIC_STATS, &above) == 0 &&
         (status.stx_dev_major != above.stx_dev_major ||
          status.stx_dev_minor != above.stx_dev_minor);
}

bool can_be_replaced(const Path& path) {
  if (is_mount_point(path)) return false;
  const Path parent = parent_of(path);
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return false;
  struct stat here {
  }, above{};
  if (::lstat(path.c_str(), &here) != 0 || ::stat(parent.c_str(), &above) != 0) return true;
  // In a folder such as /tmp only the owners of a file or of the folder may rename it.
  const uid_t user = ::geteuid();
  return (above.st_mode & S_ISVTX) == 0 || user == 0 || user == here.st_uid || user == above.st_uid;
}

void rewrite_file(const Path& to, const Path& from) {
  const MappedFile content(from);
  const int file = ::open(to.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  require_call(file, "{}: cannot open", to.string());
  const auto bytes = content.bytes();
  size_t done = 0;
  CallResult result = 0;
  while (done < bytes.size() && !result.failed()) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    result = written;
    if (!result.failed()) done += static_cast<size_t>(written);
  }
  if (!result.failed()) result = ::fsync(file);
  ::close(file);
  require_call(result, "{}: cannot write", to.string());
}

namespace {

Path place_of_file(const Path& given) {
  if (is_written_into(given)) return given;
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(given, ignored);
  require(given.has_filename() && !is_folder, "\"{}\": not a valid output file name{}",
          given.string(), is_folder ? ": it is a folder" : "");
  return where_it_leads(given);
}

}  // namespace

Path partial_path(Path path) {
  path += kPartialSuffix;
  return path;
}

PartialFile::PartialFile(const Path& path)
    : path_(place_of_file(path)),
      written_into_(is_written_into(path)),
      writer_(written_into_ ? path_ : partial_path(path_),
              written_into_ ? FileWriter::Kind::kExisting : FileWriter::Kind::kTemporary) {
  if (!written_into_) writer_.take_permissions_of(path_);
}

void PartialFile::finish() {
  writer_.finish();
  if (written_into_) return;
  const Path& partial = writer_.path();
  try {
    if (is_mount_point(path_)) {
      rewrite_file(path_, partial);
      ::unlink(partial.c_str());
    } else {
      rename_durably(partial, path_);
    }
  } catch (const Error& error) {
    std::error_code ignored;
    // The rename may have been done, and only its folder not have been synced.
    if (!std::filesystem::exists(partial, ignored)) throw;
    fail("{}; what was written is in {}: move it from there", error.what(), partial.string());
  }
}

namespace {

namespace files = std::filesystem;

// The content of the lock of a partial folder, by which a later writer recognizes it as onebit's.
constexpr std::string_view kMark = "onebit: an unfinished folder, which the next writer empties\n";
constexpr std::string_view kOfDisk = "lost+found";

// "out/" and "out" are the same folder, and the partial one is beside it.
Path without_last_slash(Path path) {
  return path.has_filename() ? path : path.parent_path();
}

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& item : files::directory_iterator(folder)) {
    names.push_back(item.path().filename().string());
  }
  return names;
}

// A writer that was killed between creating its lock and marking it has left nothing else.
bool is_left_over(const Path& partial) {
  const std::vector<std::string> names = names_in(partial);
  if (names.empty()) return true;
  const Path lock = partial / kLockName;
  if (!files::is_regular_file(lock) || files::file_size(lock) > kMark.size()) return false;
  const std::string mark = read_file(lock);
  return mark == kMark || (kMark.starts_with(mark) && names.size() == 1);
}

bool is_in_the_way(const Path& folder, const std::string& name) {
  if (name == kOfDisk) return false;
  return name != kPartialSuffix || !files::is_directory(folder / name) ||
         !is_left_over(folder / name);
}

// The folder that is replaced may be readable by some users only, or writable by a group.
void take_access_of(const Path& replaced, const Path& partial) {
  struct stat old {};
  if (::stat(replaced.c_str(), &old) != 0 || !S_ISDIR(old.st_mode)) return;
  // Only root can give the owner. Without the group, its permissions would be another group's.
  [[maybe_unused]] const int owner = ::chown(partial.c_str(), old.st_uid, gid_t(-1));
  const bool same_group = ::chown(partial.c_str(), uid_t(-1), old.st_gid) == 0;
  ::chmod(partial.c_str(), (old.st_mode & (same_group ? 07777 : 01707)) | S_IRWXU);
}

bool is_free_place(const Path& place) {
  if (!files::exists(files::symlink_status(place))) return true;
  if (!files::is_directory(place)) return false;
  const std::vector<std::string> names = names_in(place);
  return std::none_of(names.begin(), names.end(),
                      [&](const std::string& name) { return is_in_the_way(place, name); });
}

}  // namespace

bool is_free_for_folder(const Path& folder) {
  return is_free_place(where_it_leads(without_last_slash(folder)));
}

void require_only(const Path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names_in(folder)) {
    const bool is_known = std::ranges::find(names, name) != names.end() || name == kLockName;
    require(is_known || !is_in_the_way(folder, name),
            "{}: contains {}, which would be deleted; move it away or choose another output folder",
            folder.string(), name);
  }
}

PartialFolder::PartialFolder(const Path& folder, Existing existing) : existing_(existing) {
  const Path given = without_last_slash(folder);
  require(!given.empty() && given != "." && given != "..",
          "the output folder \"{}\" cannot be replaced as a whole: name a new folder in it",
          folder.string());
  choose_place(given);
  take_over(given);
}

void PartialFolder::choose_place(const Path& given) {
  try {
    folder_ = where_it_leads(given);
    const bool is_free = is_free_place(folder_);
    require(is_free || (existing_ == Existing::kReplace && files::is_directory(folder_)),
            "{}: already exists; choose another name or remove it (nothing was written)",
            given.string());
    // A folder that a rename replaces must be empty, unless the two exchange their names.
    const bool exists = files::exists(folder_);
    const bool is_empty = exists && files::is_empty(folder_);
    fills_ = exists && (!can_be_replaced(folder_) || (is_free && !is_empty));
  } catch (const files::filesystem_error& error) {
    fail("{}: cannot be inspected: {} (nothing was written)", given.string(),
         error.code().message());
  }
  partial_ = fills_ ? folder_ / kPartialSuffix : partial_path(folder_);
}

void PartialFolder::take_over(const Path& given) {
  std::error_code error;
  const bool exists = files::exists(files::symlink_status(partial_, error));
  require(!exists || (files::is_directory(partial_, error) && is_left_over(partial_)),
          "{}: already exists and was not left by an interrupted run: remove or rename it (nothing "
          "was written)",
          partial_.string());
  files::create_directories(partial_, error);
  require(!error, "{}: cannot be written to: cannot create {}: {}", given.string(),
          partial_.string(), error.message());
  lock_.emplace(partial_, kMark);
  remove_content(error);
  require(!error, "{}: cannot be emptied: {}", partial_.string(), error.message());
  if (!fills_) take_access_of(folder_, partial_);
}

// The lock is removed last: without it the folder would not be recognised as ours.
void PartialFolder::remove_content(std::error_code& error) const {
  files::directory_iterator item(partial_, error);
  for (; !error && item != files::directory_iterator(); item.increment(error)) {
    if (item->path().filename() != kLockName) files::remove_all(item->path(), error);
    if (error) return;
  }
}

PartialFolder::~PartialFolder() {
  if (finished_) return;
  std::error_code error;
  remove_content(error);
  if (!error) files::remove_all(partial_, error);
}

void PartialFolder::finish(const std::string& last) {
  sync_folder(partial_);
  finished_ = true;
  std::string reason;
  try {
    put_in_place(last);
    return;
  } catch (const Error& error) {
    reason = error.what();
  } catch (const files::filesystem_error& error) {
    reason = fmt::format("{}: {}", error.path1().string(), error.code().message());
  }
  std::error_code ignored;
  // Only syncing may have failed.
  require(files::exists(partial_, ignored), "{}", reason);
  files::remove(partial_ / kLockName, ignored);
  fail("{}: everything was written, but could not be put in place: {}. It is kept in {}: {}",
       folder_.string(), reason, partial_.string(),
       fills_ ? "move its files into the folder above" : "rename this folder");
}

void PartialFolder::put_in_place(const std::string& last) {
  std::error_code ignored;
  if (fills_) {
    fill(last);
    sync_folder(folder_);
    files::remove(partial_ / kLockName, ignored);
    files::remove(partial_, ignored);
    return;
  }
  if (existing_ == Existing::kReplace) {
    replace_folder(partial_, folder_);
  } else {
    rename_durably(partial_, folder_);
  }
  files::remove(folder_ / kLockName, ignored);
}

// The old files are moved, not removed, before the new ones are in place: this takes the least
// time, in which the folder is incomplete.
void PartialFolder::fill(const std::string& last) {
  const Path replaced = folder_ / kReplacedSuffix;
  if (existing_ == Existing::kReplace) {
    files::remove_all(replaced);
    move_aside(replaced, last);
  }
  require(is_free_place(folder_) || existing_ == Existing::kReplace, "{}: is no longer empty",
          folder_.string());
  for (const std::string& name : names_in(partial_)) {
    if (name == last || name == kLockName) continue;
    require_call(::rename((partial_ / name).c_str(), (folder_ / name).c_str()),
                 "{}: cannot be moved up", (partial_ / name).string());
  }
  sync_folder(folder_);
  rename_durably(partial_ / last, folder_ / last);
  files::remove_all(replaced);
}

void PartialFolder::move_aside(const Path& replaced, const std::string& last) const {
  std::vector<std::string> names = names_in(folder_);
  std::erase_if(names,
                [&](const std::string& name) { return name == kPartialSuffix || name == kOfDisk; });
  // Without the last file the rest does not count as a finished folder.
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == last; });
  if (names.empty()) return;
  make_folder(replaced);
  for (const std::string& name : names) {
    require_call(::rename((folder_ / name).c_str(), (replaced / name).c_str()),
                 "{}: cannot be moved aside", (folder_ / name).string());
  }
}

}  // namespace onebit
