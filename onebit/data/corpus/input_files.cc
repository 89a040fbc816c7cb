#include "onebit/data/corpus/input_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>
#include <set>
#include <string_view>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/corpus/store.h"
#include "onebit/data/corpus/store_manifest.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"

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

struct NoText {
  std::vector<std::string_view> suffixes;
  const char* what;
};

// What people give whose markup would be read as sentences.
void refuse_other_formats(const Path& path) {
  static const NoText kNoTexts[] = {
      {{".json"},
       "expected one JSON object per line with a \"text\" key: convert it and name it .jsonl"},
      {{".csv", ".tsv", ".parquet", ".arrow", ".xls", ".xlsx", ".ods"},
       "tables are not supported: write the column of the texts to a .jsonl file, as "
       "{\"text\": ...} in each line"},
      {{".html", ".htm", ".xhtml", ".xml", ".pdf", ".doc", ".docx", ".odt", ".rtf", ".epub",
        ".ipynb"},
       "its format is not supported: extract the text to a .txt file, or name it .txt if it is "
       "plain text"}};
  std::string suffix = unpacked_name(path).extension().string();
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const NoText& format : kNoTexts) {
    const bool is_one = std::ranges::find(format.suffixes, suffix) != format.suffixes.end();
    require(!is_one, "{}: {}", path.string(), format.what);
  }
}

// "" for text, ".jsonl", or nothing if the name is neither.
std::optional<std::string> kind_of(const Path& path) {
  const Path inner = unpacked_name(path);
  if (inner.extension() == ".jsonl" || inner.extension() == ".ndjson") return ".jsonl";
  if (inner.extension() == ".txt" || inner.extension() == ".text") return "";
  return std::nullopt;
}

InputFile input_file(const Path& path) {
  std::error_code no_size;
  const uint64_t size_bytes = fs::is_regular_file(path) ? fs::file_size(path, no_size) : 0;
  return {path, path.string(), kind_of(path) == ".jsonl", no_size ? 0 : size_bytes};
}

// Why an entry of a folder is not read, which is no folder and no file.
std::string reason_of(const fs::directory_entry& entry) {
  std::error_code error;
  const bool is_folder = entry.is_directory(error);
  if (entry.is_symlink()) {
    return is_folder ? "a link to a folder: give it as an input of its own" : "a link to no file";
  }
  return "neither a file nor a folder";
}

// What a program has made of texts in this folder. Null: it may contain texts.
const char* product_in(const Path& folder) {
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return fs::is_regular_file(folder / name, ignored);
  };
  if (folder.extension() == kPartialSuffix && has(kLockName)) return "an unfinished folder";
  if (has(kManifestName) && has(kTokensName)) return "a store";
  if (has("index.json") && has("passages.jsonl")) return "an index of passages";
  if (has(run_files::kMetrics) && has(run_files::kResolvedRecipe)) return "a run";
  const bool has_values = has("model.safetensors") || has("model.safetensors.index.json") ||
                          has("pytorch_model.bin") || has("pytorch_model.bin.index.json");
  return has("config.json") && has_values ? "a model" : nullptr;
}

void add_folder(const Path& folder, InputFiles& found) {
  if (const char* product = product_in(folder)) {
    fail("{}: is {}, not a folder of texts", folder.string(), product);
  }
  std::vector<Path> paths;
  const size_t no_files_before = found.no_files.size();
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool hidden = entry->path().filename().string().starts_with(".");
    std::error_code no_target;  // of a link, which is an entry like others
    const bool is_folder = entry->is_directory(no_target);
    const char* product = is_folder && !hidden ? product_in(entry->path()) : nullptr;
    if (hidden || product != nullptr) {
      if (is_folder) entry.disable_recursion_pending();
      if (product != nullptr) {
        found.no_texts.push_back(fmt::format("{} ({})", entry->path().string(), product));
      }
    } else if (entry->is_regular_file(no_target)) {
      paths.push_back(entry->path());
    } else if (!is_folder || entry->is_symlink()) {
      found.no_files.push_back(fmt::format("{} ({})", entry->path().string(), reason_of(*entry)));
    }
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
  std::sort(found.no_files.begin() + static_cast<ptrdiff_t>(no_files_before), found.no_files.end());
  std::sort(found.no_texts.begin(), found.no_texts.end());
  if (found.files.size() > before) return;
  for (const Path& path : paths) {
    if (is_archive(path)) refuse_archive(path.string());
  }
  fail(
      "{}: contains no .txt, .text or .jsonl file (nor one with .gz, .xz, .zst, .bz2 or .lz4 "
      "appended){}",
      folder.string(),
      found.no_files.size() > no_files_before ? "; not read: " + found.no_files[no_files_before]
                                              : "");
}

// A file that is given by name and with its folder, or under two names.
void drop_repeated(InputFiles& found) {
  std::set<Path> seen;
  std::erase_if(found.files, [&](const InputFile& file) {
    const bool is_input = file.path == "-";
    if (!is_input && !fs::is_regular_file(file.path)) return false;
    std::error_code ignored;
    if (seen.insert(is_input ? file.path : fs::weakly_canonical(file.path, ignored)).second) {
      return false;
    }
    found.repeated.push_back(file.name);
    return true;
  });
}

}  // namespace

std::vector<std::string> notes_of(const InputFiles& files) {
  std::vector<std::string> notes;
  const auto add = [&](const std::vector<std::string>& paths, const char* one, const char* several,
                       const char* what) {
    if (paths.empty()) return;
    const auto count = static_cast<int64_t>(paths.size());
    notes.push_back(fmt::format(
        "{} {}; first: {}",
        count == 1 ? fmt::format("1 {} is", one) : fmt::format("{} {} are", count, several), what,
        paths.front()));
  };
  add(files.ignored, "file", "files", "not text and ignored");
  add(files.no_files, "entry of a folder", "entries of folders", "not read");
  add(files.no_texts, "folder", "folders", "made from texts and not read");
  add(files.repeated, "file", "files", "given more than once and read once");
  return notes;
}

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
    refuse_other_formats(input);
    found.files.push_back(input_file(input));
  }
  require(!found.files.empty(), "no input: specify files, folders, or - for standard input");
  drop_repeated(found);
  return found;
}

void refuse_inputs_in(const Path& output, const std::vector<InputFile>& files) {
  std::error_code ignored;
  const auto folder_of = [&](const Path& file) {
    return fs::weakly_canonical(file, ignored).parent_path();
  };
  const Path folder = folder_of(output / kLockName);
  for (const InputFile& file : files) {
    require(file.path == "-" || folder_of(file.path) != folder,
            "{}: is in the output folder {}, which would be replaced; choose another one",
            file.name, output.string());
  }
}

namespace {

constexpr const char* kKeptStreams = "streams";

// Closes what it has opened.
class Stream {
 public:
  explicit Stream(const InputFile& file) : name_(file.name) {
    if (file.path == "-") return;
    const CallResult opened = descriptor_ = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
    require_call(opened, "{}: cannot open", name_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }

  uint64_t copy_to(const Path& path) const {
    FileWriter writer(path);
    std::vector<char> buffer(size_t{1} << 20);
    for (;;) {
      const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
      const CallResult result = got;
      if (result.failed() && result.error() == EINTR) continue;
      require_call(result, "{}: cannot read", name_);
      if (got == 0) break;
      writer.write(buffer.data(), static_cast<size_t>(got));
    }
    writer.finish();
    return writer.size_bytes();
  }

 private:
  std::string name_;
  int descriptor_ = STDIN_FILENO;
};

}  // namespace

bool is_stream(const InputFile& file) {
  return file.path == "-" || fs::is_fifo(file.path) || fs::is_character_file(file.path);
}

void keep_streams(std::vector<InputFile>& files, const Path& folder) {
  const Path kept = folder / kKeptStreams;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!is_stream(files[i])) continue;
    fs::create_directories(kept);
    const Path copy = kept / std::to_string(i);
    files[i].size_bytes = Stream(files[i]).copy_to(copy);
    files[i].path = copy;
  }
}

void drop_kept_streams(const Path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / kKeptStreams, ignored);
}

}  // namespace onebit::corpus
