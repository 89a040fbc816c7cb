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
  // What folders contain besides folders and files, each with what it is: a link to a folder, which
  // may lead back, a link to nothing, a pipe, which may never end.
  std::vector<std::string> no_files;
  // Folders in folders that contain a store, an index, a run or a model, each with what it is.
  // Their vocabularies and logs are no text.
  std::vector<std::string> no_texts;
  std::vector<std::string> repeated;  // read once, though given more than once
};

// What was found and is not read, for users: a count and the first of each. Empty if there is
// nothing.
std::vector<std::string> notes_of(const InputFiles& files);

// Accepts files as given, folders, which are searched recursively and sorted by path (.txt, .text,
// .jsonl and .ndjson, also compressed: byte_stream.h, while a file given by name may have any
// suffix but those of known other formats), and "-" for standard input. A file that is given twice
// is read once. Errors: a missing path, a folder without text, a store, an index, a run or a model,
// an archive, a table, a document with markup (with what to do instead).
InputFiles find_input_files(const std::vector<Path>& inputs);

// Error: a file is in the folder `output`, which is going to be replaced.
void refuse_inputs_in(const Path& output, const std::vector<InputFile>& files);

// Standard input and named pipes can be read only once, but learning a vocabulary needs the text
// twice.

bool is_stream(const InputFile& file);

// Copies those among `files` to files in `folder` and replaces their entries.
void keep_streams(std::vector<InputFile>& files, const Path& folder);
void drop_kept_streams(const Path& folder);

}  // namespace onebit::corpus
