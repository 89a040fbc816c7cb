// Checks that a command does not write to what it reads.
#pragma once

#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::commands {

// `outputs` are files that will be written. Empty paths and devices are skipped. Errors: an output
// is a folder, another output, one of `inputs`, or a file of the model or run in `model`,
// which may be empty.
void require_separate_outputs(const std::vector<Path>& outputs, const std::vector<Path>& inputs,
                              const Path& model);

// The files of a model or run in `folder`, without predictions and the like that lie beside them.
std::vector<Path> files_of_model_or_run(const Path& folder);

// To be called before a command computes what it writes at its end. Empty paths and devices are
// skipped. Errors: `output` is a folder, or no file can be created at that place, which is tried.
void require_writable_file(const Path& output);

}  // namespace onebit::commands
