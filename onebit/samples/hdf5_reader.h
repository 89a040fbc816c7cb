// The examples that NVIDIA's create_pretraining_data.py writes: HDF5 files with an array for each
// part of the examples, [examples, length], or, as its MLPerf submissions have them, [examples] of
// lists without padding.
// https://github.com/NVIDIA/DeepLearningExamples (PyTorch/LanguageModeling/BERT)
#pragma once

#include <memory>

#include "onebit/samples/padded_sample.h"

namespace onebit::samples {

// Opens a file and reads it ahead in a process of its own: libhdf5 crashes on some damaged files,
// and the memory that it spoils then must not be this process's. Errors, also of reading, with the
// file and, where there is one, dataset and row: no HDF5 file, a dataset missing, of another shape,
// type or filter, damaged data, a crash. Error of a build without libhdf5: always.
std::unique_ptr<SampleReader> open_hdf5(const Path& path);

}  // namespace onebit::samples
