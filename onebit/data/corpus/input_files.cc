#include "onebit/data/corpus/input_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {

namespace {

namespace fs = std::filesystem;

bool is_archive(const Path& path) {
  static const std::set<std::string> kArchives = {".tar", ".tgz",  ".txz",  ".tbz", ".zip",
                                                  ".7z",  ".tbz2", ".tzst", ".rar"};
  const Path inner = unpacked_name(path);
  return kArchives.contains(inner.extension()) || kArchives.contains(path.extension());
}

[[noreturn]] void refuse_archive(const std::string& path) {
  fail(
      "{}: archives are not supported: unpack it (for a tar file: tar -xf {} -C some-folder) and "
      "specify the folder",
      path, path);
}

// "" for text, ".jsonl", or nothing if the name is neither.
std::optional<std::string> kind_of(const Path& path) {
  const Path inner = unpacked_name(path);
  if (inner.extension() == ".jsonl") return ".jsonl";
  if (inner.extension() == ".txt" || inner.extension() == ".text") return "";
  return std::nullopt;
}

InputFile input_file(const Path& path) {
  std::error_code no_size;
  const uint64_t size_bytes = fs::is_regular_file(path) ? fs::file_size(path, no_size) : 0;
  return {path, path.string(), kind_of(path) == ".jsonl", no_size ? 0 : size_bytes};
}

void add_folder(const Path& folder, InputFiles& found) {
  std::vector<Path> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool hidden = entry->path().filename().string().starts_with(".");
    if (hidden && entry->is_directory()) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file()) paths.push_back(entry->path());
  }
  require(!error, "{}: cannot list the folder: {}", folder.string(), error.message());
  std::sort(paths.begin(), paths.end());
  const size_t before = found.files.size();
  for (const Path& path : paths) {
    if (!is_archive(path) && kind_of(path)) {
      found.files.push_back(input_file(path));
      found.files.back().is_found = true;
    } else {
      found.ignored.push_back(path.string());
    }
  }
  if (found.files.size() > before) return;
  for (const Path& path : paths) {
    if (is_archive(path)) refuse_archive(path.string());
  }
  fail(
      "{}: contains no .txt, .text or .jsonl file (nor one with .gz, .xz, .zst, .bz2 or .lz4 "
      "appended)",
      folder.string());
}

}  // namespace

InputFiles find_input_files(const std::vector<Path>& inputs) {
  InputFiles found;
  for (const Path& input : inputs) {
    if (input == "-") {
      found.files.push_back({input, "standard input", false, 0});
      continue;
    }
    require(fs::exists(input), "{}: no such file or folder", input.string());
    if (fs::is_directory(input)) {
      add_folder(input, found);
      continue;
    }
    if (is_archive(input)) refuse_archive(input.string());
    require(
        input.extension() != ".json",
        "{}: expected one JSON object per line with a \"text\" key: convert it and name it .jsonl",
        input.string());
    found.files.push_back(input_file(input));
  }
  require(!found.files.empty(), "no input: specify files, folders, or - for standard input");
  return found;
}

namespace {

constexpr const char* kKeptName = "standard-input";

uint64_t copy_standard_input(const Path& path) {
  FileWriter writer(path);
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    const CallResult result = got;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "standard input: cannot read");
    if (got == 0) break;
    writer.write(buffer.data(), static_cast<size_t>(got));
  }
  writer.finish();
  return writer.size_bytes();
}

}  // namespace

void keep_standard_input(std::vector<InputFile>& files, const Path& folder) {
  for (InputFile& file : files) {
    if (file.path != "-") continue;
    file.path = folder / kKeptName;
    file.size_bytes = copy_standard_input(file.path);
  }
}

void drop_kept_standard_input(const Path& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder / kKeptName, ignored);
}

}  // namespace onebit::corpus
