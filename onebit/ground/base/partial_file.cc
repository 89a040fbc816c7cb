#include "onebit/ground/base/partial_file.h"

#include <unistd.h>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/place.h"

namespace onebit {
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

}  // namespace onebit
