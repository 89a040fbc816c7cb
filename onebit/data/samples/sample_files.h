// Resolves a user's inputs to files of examples.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::samples {

enum class SampleFormat { kHdf5, kTfRecord };

// "hdf5", "tfrecord".
const char* name(SampleFormat format);

struct SampleFiles {
  std::vector<Path> files;
  std::vector<std::string> ignored;  // files of another kind in folders
};

// Accepts files as given, shell patterns ("shards/*.hdf5") and folders, in which files of the
// format are found by name; those of a pattern or a folder are sorted by path. Errors: no match; a
// folder with shards of both training and test, which NVIDIA's scripts write side by side; a file
// that is given twice.
SampleFiles find_sample_files(const std::vector<Path>& inputs, SampleFormat format);

}  // namespace onebit::samples
