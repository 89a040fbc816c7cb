// Reads the examples written by NVIDIA's create_pretraining_data.py: HDF5 files with one array for
// each part of the examples, [examples, length], or, in NVIDIA's MLPerf submissions, [examples] of
// lists without padding. https://github.com/NVIDIA/DeepLearningExamples
// (PyTorch/LanguageModeling/BERT)
#pragma once

#include <memory>

#include "onebit/data/samples/sample.h"

namespace onebit::samples {

// Opens a file and reads ahead in a separate process: libhdf5 crashes on some damaged files, and
// must not corrupt the memory of this process. Errors, also while reading, with the file and, if
// known, dataset and row: not an HDF5 file, a dataset missing or of another shape, type or filter,
// damaged data, a crash. A build without libhdf5 always fails.
std::unique_ptr<SampleReader> open_hdf5(const Path& path);

}  // namespace onebit::samples
