#include "onebit/data/samples/sample_files.h"

#include <glob.h>

#include <algorithm>
#include <set>

#include "onebit/ground/base/error.h"

namespace onebit::samples {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const Path& path) {
  return path.string().find_first_of("*?[") != std::string::npos;
}

// "part-0.tfrecord", "tf_examples.tf_record", "train.tfrecord-00000-of-00500", also with .gz.
bool has_name_of(const Path& path, SampleFormat format) {
  const std::string file = path.filename().string();
  if (format == SampleFormat::kHdf5) return file.ends_with(".hdf5") || file.ends_with(".h5");
  return file.find(".tfrecord") != std::string::npos ||
         file.find(".tf_record") != std::string::npos;
}

std::vector<Path> matches_of(const Path& pattern) {
  glob_t found{};
  std::vector<Path> paths;
  if (::glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  std::erase_if(paths, [](const Path& path) { return !fs::is_regular_file(path); });
  require(!paths.empty(), "{}: no file matches", pattern.string());
  return paths;
}

void require_one_part(const Path& folder, const std::vector<Path>& files) {
  const auto any = [&](const char* part) {
    return std::any_of(files.begin(), files.end(), [&](const Path& path) {
      return path.filename().string().find(part) != std::string::npos;
    });
  };
  require(!any("_training_") || !any("_test_"),
          "{}: has training and test shards: select one of them, for instance --input "
          "'{}/*_training_*'",
          folder.string(), folder.string());
}

void add_folder(const Path& folder, SampleFormat format, SampleFiles& found) {
  std::vector<Path> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_regular_file() || entry->path().filename().string().starts_with(".")) continue;
    if (has_name_of(entry->path(), format)) {
      files.push_back(entry->path());
    } else {
      found.ignored.push_back(entry->path().string());
    }
  }
  require(!error, "{}: cannot list the folder: {}", folder.string(), error.message());
  require(!files.empty(), "{}: contains no file named {}: specify the files with --input '{}/*'",
          folder.string(), format == SampleFormat::kHdf5 ? ".hdf5 or .h5" : ".tfrecord",
          folder.string());
  require_one_part(folder, files);
  std::sort(files.begin(), files.end());
  found.files.insert(found.files.end(), files.begin(), files.end());
}

}  // namespace

const char* name(SampleFormat format) {
  return format == SampleFormat::kHdf5 ? "hdf5" : "tfrecord";
}

SampleFiles find_sample_files(const std::vector<Path>& inputs, SampleFormat format) {
  SampleFiles found;
  for (const Path& input : inputs) {
    require(input != "-", "standard input: {} can only be read from files: specify them",
            name(format));
    if (fs::is_directory(input)) {
      add_folder(input, format, found);
    } else if (!fs::exists(input) && is_pattern(input)) {
      const std::vector<Path> paths = matches_of(input);
      found.files.insert(found.files.end(), paths.begin(), paths.end());
    } else {
      require(fs::exists(input), "{}: no such file or folder", input.string());
      found.files.push_back(input);
    }
  }
  std::set<std::string> seen;
  for (const Path& path : found.files) {
    require(seen.insert(fs::weakly_canonical(path).string()).second, "{}: is given twice",
            path.string());
  }
  return found;
}

}  // namespace onebit::samples
