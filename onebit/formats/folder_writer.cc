#include "onebit/formats/folder_writer.h"

#include <system_error>
#include <utility>

#include "onebit/base/error.h"

namespace onebit::formats {
namespace {

namespace files = std::filesystem;

// "out/" and "out" are one folder, and the partial one stands beside it.
Path without_last_slash(Path path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

FolderWriter::FolderWriter(Path folder)
    : folder_(without_last_slash(std::move(folder))), partial_(folder_) {
  require(!folder_.empty() && folder_ != "." && folder_ != "..",
          "an output folder must have a name of its own");
  std::error_code error;
  const bool is_free = !files::exists(folder_, error) ||
                       (files::is_directory(folder_, error) && files::is_empty(folder_, error));
  require(is_free && !error,
          "{}: is there already; give another name or remove it (nothing was written)",
          folder_.string());
  partial_ += ".partial";
  files::remove_all(partial_, error);
  files::create_directories(partial_, error);
  require(!error, "{}: cannot create the folder: {}", partial_.string(), error.message());
}

FolderWriter::~FolderWriter() {
  if (finished_) return;
  std::error_code ignored;
  files::remove_all(partial_, ignored);
}

void FolderWriter::finish() {
  sync_folder(partial_);
  rename_durably(partial_, folder_);
  finished_ = true;
}

}  // namespace onebit::formats
