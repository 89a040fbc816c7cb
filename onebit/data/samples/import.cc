#include "onebit/data/samples/import.h"

#include "onebit/data/samples/hdf5_reader.h"
#include "onebit/data/samples/sample.h"
#include "onebit/data/samples/sample_writer.h"
#include "onebit/data/samples/tfrecord_reader.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {
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
