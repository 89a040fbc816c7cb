// The files of examples that a user's inputs refer to.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::samples {

enum class SampleFormat { kHdf5, kTfRecord };

// "hdf5", "tfrecord".
const char* name(SampleFormat format);

struct SampleFiles {
  std::vector<Path> files;
  std::vector<std::string> ignored;  // in folders: of another kind
};

// Files as given, patterns of the shell ("shards/*.hdf5") and folders, whose files of the format
// are found by their names; those of a pattern or a folder sorted by path. Errors: nothing there; a
// folder with shards of training and of test, which NVIDIA's scripts write side by side; a file
// that is given twice.
SampleFiles find_sample_files(const std::vector<Path>& inputs, SampleFormat format);

}  // namespace onebit::samples
