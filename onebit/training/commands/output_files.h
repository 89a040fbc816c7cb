// Checks that a command does not write to what it reads.
#pragma once

#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::commands {

// `outputs` are files that will be written. Empty paths and devices are skipped. Errors: an output
// is a folder, "-", another output, one of `inputs` (where "-" is standard input), a file of the
// model or run in `model`, which may be empty, or of any other model, run or checkpoint.
void require_separate_outputs(const std::vector<Path>& outputs, const std::vector<Path>& inputs,
                              const Path& model);

// To be called before a command computes what it writes at its end. Empty paths and devices are
// skipped. Errors: `output` is a folder, "-", or a file of a model, a run or a checkpoint, or no
// file can be created at that place, which is tried.
void require_writable_file(const Path& output);

}  // namespace onebit::commands
