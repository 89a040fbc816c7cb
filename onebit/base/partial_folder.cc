#include "onebit/base/partial_folder.h"

#include <system_error>
#include <utility>

#include "onebit/base/error.h"
#include "onebit/base/folder.h"
#include "onebit/base/partial_file.h"

namespace onebit {
namespace {

namespace files = std::filesystem;

// "out/" and "out" are the same folder, and the partial one is beside it.
Path without_last_slash(Path path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

PartialFolder::PartialFolder(Path folder, Existing existing)
    : folder_(without_last_slash(std::move(folder))),
      partial_(partial_path(folder_)),
      existing_(existing) {
  require(!folder_.empty() && folder_ != "." && folder_ != "..",
          "an output folder must have a name of its own");
  std::error_code error;
  const bool is_free = !files::exists(folder_, error) ||
                       (files::is_directory(folder_, error) && files::is_empty(folder_, error));
  require((is_free || existing == Existing::kReplace) && !error,
          "{}: already exists; choose another name or remove it (nothing was written)",
          folder_.string());
  take_over();
}

void PartialFolder::take_over() {
  std::error_code error;
  const bool strange = files::exists(partial_, error) && !files::exists(partial_ / kLockName) &&
                       !(files::is_directory(partial_, error) && files::is_empty(partial_, error));
  require(!strange && !error,
          "{}: already exists and was not left by an interrupted run: remove or rename it (nothing "
          "was written)",
          partial_.string());
  make_folder(partial_);
  lock_.emplace(partial_);
  remove_content(error);
  require(!error, "{}: cannot be emptied: {}", partial_.string(), error.message());
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

void PartialFolder::finish() {
  sync_folder(partial_);
  if (existing_ == Existing::kReplace) {
    replace_folder(partial_, folder_);
  } else {
    rename_durably(partial_, folder_);
  }
  finished_ = true;
  std::error_code ignored;
  files::remove(folder_ / kLockName, ignored);
}

}  // namespace onebit
