// Standard input can be read only once, but learning a vocabulary needs the text twice.
#pragma once

#include <vector>

#include "onebit/data/corpus/input_files.h"
#include "onebit/ground/base/file.h"

namespace onebit::corpus {

// If `files` contain standard input, copies it to a file in `folder` and replaces the entry.
void keep_standard_input(std::vector<InputFile>& files, const Path& folder);
void drop_kept_standard_input(const Path& folder);

}  // namespace onebit::corpus
