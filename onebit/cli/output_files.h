// What a command writes must not be what it reads.
#pragma once

#include <vector>

#include "onebit/base/file.h"

namespace onebit::cli {

// `outputs` are files that will be written; empty paths and devices are passed over. Errors: one is
// a folder, another of them, one of `inputs`, or a file of the model or run in `model`.
void require_separate_outputs(const std::vector<Path>& outputs, const std::vector<Path>& inputs,
                              const Path& model);

// Before a command computes what it writes at its end. Empty paths and devices are passed over.
// Errors: `output` is a folder; no file can be made where it is to lie, which is tried.
void require_writable_file(const Path& output);

}  // namespace onebit::cli
