#include "onebit/data/samples/import.h"

#include <glob.h>

#include <algorithm>
#include <set>

#include "onebit/data/samples/hdf5_reader.h"
#include "onebit/data/samples/sample.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/data/samples/tfrecord_reader.h"
#include "onebit/ground/base/clock.h"
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

namespace {

// The number of samples between two progress checks of a large file.
constexpr uint64_t kSamplesBetweenLooks = 256;

std::unique_ptr<SampleReader> open_reader(const Path& path, SampleFormat format) {
  return format == SampleFormat::kHdf5 ? open_hdf5(path) : open_tfrecord(path);
}

uint64_t size_of(const Path& path) {
  std::error_code error;
  const uint64_t size_bytes = std::filesystem::file_size(path, error);
  return error ? 0 : size_bytes;
}

class Progress {
 public:
  Progress(const ImportOptions& options, uint64_t total_bytes)
      : report_(options.progress), total_bytes_(total_bytes) {}

  void update(uint64_t samples, uint64_t done_bytes) {
    if (!report_ || since_report_.seconds() < 1) return;
    since_report_.restart();
    send(samples, done_bytes);
  }
  void send(uint64_t samples, uint64_t done_bytes) {
    if (!report_) return;
    ImportProgress progress{.samples = samples,
                            .done_bytes = done_bytes,
                            .total_bytes = total_bytes_,
                            .seconds = watch_.seconds()};
    if (done_bytes > 0 && done_bytes <= total_bytes_) {
      progress.seconds_left = progress.seconds * static_cast<double>(total_bytes_ - done_bytes) /
                              static_cast<double>(done_bytes);
    }
    report_(progress);
  }

 private:
  const std::function<void(const ImportProgress&)>& report_;
  uint64_t total_bytes_;
  Stopwatch watch_, since_report_;
};

// Notes on the examples, by which users can verify that the intended files were read.
std::vector<std::string> notes_of(const SampleManifest& manifest, const SampleFiles& inputs) {
  std::vector<std::string> notes;
  if (!inputs.ignored.empty()) {
    notes.push_back(fmt::format("{} files have other names and were ignored; first: {}",
                                inputs.ignored.size(), inputs.ignored.front()));
  }
  if (manifest.labels == 0) {
    notes.emplace_back(
        "the files have no next_sentence_labels: set data.next_sentence to false in the recipe");
  }
  return notes;
}

}  // namespace

ImportReport import_samples(const ImportOptions& options) {
  const Stopwatch watch;
  const SampleFiles inputs = find_sample_files(options.inputs, options.format);
  ImportReport report;
  std::vector<std::string> names;
  for (const Path& path : inputs.files) {
    report.file_bytes += size_of(path);
    names.push_back(path.string());
  }
  SampleWriter writer(options.output, *options.vocabulary, options.casing, options.overwrite);
  SampleChecker checker(*options.vocabulary, options.vocabulary_place);
  Progress progress(options, report.file_bytes);
  PaddedSample padded;
  Sample sample;
  uint64_t bytes_before = 0;
  for (const Path& path : inputs.files) {
    const auto reader = open_reader(path, options.format);
    while (reader->read(padded)) {
      if (!checker.take(padded, sample)) continue;
      writer.add(sample, padded.place);
      if (writer.samples() % kSamplesBetweenLooks == 0) {
        progress.update(writer.samples(), bytes_before + reader->consumed_bytes());
      }
    }
    bytes_before += size_of(path);
    progress.update(writer.samples(), bytes_before);
  }
  progress.send(writer.samples(), bytes_before);
  checker.finish();
  require(writer.samples() > 0 || checker.without_masks() == 0,
          "{}: no word is masked, nor in any other example: there is nothing to train on",
          checker.first_without_masks());
  report.manifest = writer.finish(name(options.format), names);
  report.decisions = notes_of(report.manifest, inputs);
  if (checker.without_masks() > 0) {
    report.decisions.push_back(fmt::format(
        "{} left out, as no word of {} is masked; first: {}",
        checker.without_masks() == 1 ? "1 example was"
                                     : fmt::format("{} examples were", checker.without_masks()),
        checker.without_masks() == 1 ? "it" : "them", checker.first_without_masks()));
  }
  report.seconds = watch.seconds();
  return report;
}

}  // namespace onebit::samples
