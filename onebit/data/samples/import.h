// Files of pre-training examples to a sample store (`onebit prepare --from hdf5|tfrecord`).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/samples/sample_store.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/file.h"

namespace onebit::samples {

// Resolves a user's inputs to files of examples.
enum class SampleFormat { kHdf5, kTfRecord };

// "hdf5", "tfrecord".
const char* name(SampleFormat format);

struct SampleFiles {
  std::vector<Path> files;
  std::vector<std::string> ignored;  // files of another kind in folders
};

// Accepts files as given, shell patterns ("shards/*.hdf5") and folders, in which files of the
// format are found by name. Files of a pattern or a folder are sorted by path. Errors: no match, a
// folder with shards of both training and test, which NVIDIA's scripts write side by side, a file
// that is given twice.
SampleFiles find_sample_files(const std::vector<Path>& inputs, SampleFormat format);

struct ImportProgress {
  uint64_t samples = 0;
  uint64_t done_bytes = 0, total_bytes = 0;  // of the files, as sizes on disk
  double seconds = 0;
  double seconds_left = -1;  // -1 when unknown
};

struct ImportOptions {
  std::vector<Path> inputs;  // as in find_sample_files()
  SampleFormat format = SampleFormat::kHdf5;
  Path output;
  std::shared_ptr<const text::Vocabulary> vocabulary;  // that the files were written with
  std::string vocabulary_place;                        // for messages
  text::Casing casing = text::Casing::kUncased;
  bool overwrite = false;                               // replace a finished store
  std::function<void(const ImportProgress&)> progress;  // called about once a second
};

struct ImportReport {
  SampleManifest manifest;
  std::vector<std::string> decisions;  // to be shown to the user
  uint64_t file_bytes = 0;
  double seconds = 0;
};

// Writes to `<output>.partial`, renamed to `output` when everything is on disk. Errors (which leave
// nothing behind): as for find_sample_files(), the readers and SampleChecker, no example in any
// file, an existing output.
ImportReport import_samples(const ImportOptions& options);

}  // namespace onebit::samples
