#include "onebit/base/partial_file.h"

#include <unistd.h>

#include "onebit/base/error.h"

namespace onebit {
namespace {

Path where_it_leads(const Path& path) {
  namespace files = std::filesystem;
  std::error_code ignored;
  if (!files::is_symlink(path, ignored)) return path;
  return files::exists(path, ignored) ? files::canonical(path)
                                      : path.parent_path() / files::read_symlink(path);
}

}  // namespace

Path partial_path(Path path) {
  path += kPartialSuffix;
  return path;
}

PartialFile::PartialFile(const Path& path)
    : path_(where_it_leads(path)), writer_(partial_path(path_), FileWriter::NamedFrom::kFinished) {}

void PartialFile::finish() {
  const Path partial = partial_path(path_);
  writer_.finish();
  try {
    rename_durably(partial, path_);
  } catch (const Error&) {
    ::unlink(partial.c_str());  // fails harmlessly if the rename has already been done
    throw;
  }
}

}  // namespace onebit
