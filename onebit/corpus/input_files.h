// The files that a user's inputs refer to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::corpus {

struct InputFile {
  Path path;  // "-" is standard input
  std::string name;
  bool jsonl = false;
  uint64_t size_bytes = 0;  // as it lies on the disk; 0 when it has no size
};

struct InputFiles {
  std::vector<InputFile> files;
  std::vector<std::string> ignored;  // in folders: neither text nor JSON lines
};

// Files as given, folders searched to the bottom and sorted by path: .txt, .text and .jsonl, also
// with the ending of a packed file behind (byte_stream.h; a file named by itself may have any other
// ending); "-" is standard input.
// Errors: a missing path, a folder without text, an archive (with what to do instead).
InputFiles find_input_files(const std::vector<Path>& inputs);

}  // namespace onebit::corpus
