// The lines of a text file, unpacked while they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "onebit/corpus/byte_stream.h"

namespace onebit::corpus {

class FileLines {
 public:
  // gzip and xz are recognised by their first bytes; "-" is standard input.
  explicit FileLines(const Path& path);

  // Overwrites `line` with the next one, without its "\n"; false after the last. A byte order mark
  // at the beginning of the file is left out. Errors, with file:line: not UTF-8; longer than 64
  // MiB.
  bool next(std::string& line);
  // Number of the line that next() has given, from 1.
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
