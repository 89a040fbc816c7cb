// Lines of a text or of a file, and their white space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {

// Marks at the beginning of text files.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8

// `text`: the beginning of file `name`. Error: it has the mark of UTF-16, or none, and every second
// of its first bytes is 0.
inline void refuse_utf16(std::string_view text, const std::string& name) {
  require(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"),
          "{}: is UTF-16: convert it with iconv -f UTF-16 -t UTF-8", name);
  const auto has_zeros = [&](size_t odd) {
    return text.size() >= 4 && text[odd] == 0 && text[odd + 2] == 0 && text[1 - odd] != 0 &&
           text[3 - odd] != 0;
  };
  require(!has_zeros(1), "{}: is UTF-16: convert it with iconv -f UTF-16LE -t UTF-8", name);
  require(!has_zeros(0), "{}: is UTF-16: convert it with iconv -f UTF-16BE -t UTF-8", name);
}

// `text`: the beginning of file `name`. Error: its lines end in carriage returns alone, as old
// programs for the Macintosh write them, so that all of it would be one line.
inline void refuse_carriage_returns(std::string_view text, const std::string& name) {
  const size_t first = text.find('\r');
  if (first == std::string_view::npos || text.find('\n') != std::string_view::npos) return;
  require(text.find_first_not_of('\r', first) == std::string_view::npos,
          "{}: its lines end in carriage returns (CR) alone: convert it with tr '\\r' '\\n'", name);
}

inline std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// Calls body(line) for every line, without its line end ("\n").
template <typename Body>
void for_each_line(std::string_view text, const Body& body) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      body(text);
      return;
    }
    body(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

// The lines of a text file, decompressed while it is read.
class FileLines {
 public:
  // Compressed files are detected by their first bytes. "-" is standard input.
  explicit FileLines(const Path& path);

  // Overwrites `line` with the next line, without its "\n", and returns false after the last. A
  // byte order mark at the beginning of the file is skipped. Errors, with file:line: not UTF-8, or
  // longer than 64 MiB.
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
