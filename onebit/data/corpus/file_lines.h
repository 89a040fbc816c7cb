// The lines of a text file, decompressed while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "onebit/data/corpus/byte_stream.h"

namespace onebit::corpus {

class FileLines {
 public:
  // Compressed files are detected by their first bytes; "-" is standard input.
  explicit FileLines(const Path& path);

  // Overwrites `line` with the next line, without its "\n"; returns false after the last. A byte
  // order mark at the beginning of the file is skipped. Errors, with file:line: not UTF-8; longer
  // than 64 MiB.
  bool next(std::string& line);
  // The number, counted from 1, of the line that next() returned.
  uint64_t number() const { return number_; }
  const std::string& name() const { return name_; }
  // "train.tsv:12"
  std::string place() const;

 private:
  bool fill();

  std::string name_;
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  size_t position_ = 0;
  uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace onebit::corpus
