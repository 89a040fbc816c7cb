// Text from files, folders or standard input, in blocks cut where a line ends; compressed files are
// unpacked while they are read, so memory does not depend on their size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/data/text_format.h"

namespace onebit::data {

// A piece of one file. All of a file's blocks come in order; the last one says so.
struct TextBlock {
  uint64_t ticket = 0;                     // counts blocks over all files
  std::string source;                      // path, or "standard input"
  uint64_t offset_bytes = 0;               // of text[0] in the unpacked file
  uint64_t first_line = 1;                 // number of the line text starts with
  TextFormat format = TextFormat::kLines;  // never kAuto
  bool ends_file = false;
  std::string text;
};

// The files `inputs` stand for, sorted by path in each folder (searched to the bottom): .txt, .text
// and .jsonl, also with .gz or .xz behind; "-" is standard input. Errors: a missing path, a folder
// without text, a kind of file that is not read (with what to do instead).
std::vector<Path> find_text_files(const std::vector<Path>& inputs);

// One thread at a time.
class TextSource {
 public:
  // `format` applies to text files; .jsonl files are kJsonl unless it says otherwise. kAuto decides
  // by the first text file.
  TextSource(std::vector<Path> files, TextFormat format);
  ~TextSource();

  // Overwrites `block`; false after the last one. Errors: unreadable, empty (no byte, or white
  // space alone) or damaged file, a line longer than 256 MiB.
  bool read(TextBlock& block);
  // Sum of the sizes of the files as they lie on the disk, 0 for standard input.
  uint64_t total_bytes() const;
  // How far into them reading has come.
  uint64_t consumed_bytes() const;
  // What kAuto chose and why; empty before it had to.
  const std::string& decision() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::data
