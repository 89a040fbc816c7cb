// Resolves a user's inputs to files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::corpus {

struct InputFile {
  Path path;  // "-" is standard input
  std::string name;
  bool jsonl = false;
  uint64_t size_bytes = 0;  // size on disk, or 0 if it has no size
  bool is_found = false;    // in a folder, rather than named
};

struct InputFiles {
  std::vector<InputFile> files;
  std::vector<std::string> ignored;  // files in folders that are neither text nor JSON lines
};

// Accepts files as given, folders, which are searched recursively and sorted by path (.txt, .text
// and .jsonl, also compressed: byte_stream.h, while a file given by name may have any suffix), and
// "-" for standard input. Errors: a missing path, a folder without text, an archive (with what to
// do instead).
InputFiles find_input_files(const std::vector<Path>& inputs);

// Standard input can be read only once, but learning a vocabulary needs the text twice.

// If `files` contain standard input, copies it to a file in `folder` and replaces the entry.
void keep_standard_input(std::vector<InputFile>& files, const Path& folder);
void drop_kept_standard_input(const Path& folder);

}  // namespace onebit::corpus
