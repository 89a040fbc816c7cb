// Text from files or standard input, in blocks cut at the end of a line or a paragraph. Compressed
// files are decompressed while they are read, so memory does not depend on their size.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/corpus/input_files.h"

namespace onebit::corpus {

// The layout of sentences and documents in a text file.
enum class TextFormat {
  kAuto,       // lines or prose, detected
  kLines,      // one sentence per line, an empty line between documents
  kProse,      // paragraphs separated by empty lines. A document per file, or form feeds between
               // documents. Sentences are found by ICU
  kDocuments,  // the same with an empty line, or a form feed, between documents
  kJsonl,      // one JSON object per line, its "text" a document of prose
};

const char* name(TextFormat format);
// "auto", "lines", "prose", "documents" or "jsonl". Error: another name. The message lists them.
TextFormat text_format_from_name(const std::string& name);

// Returns kLines or kProse for text that begins with `sample`, and sets `reason`, for the user.
TextFormat detect_text_format(std::string_view sample, std::string& reason);

// A piece of one file, about a megabyte. A file's blocks come in order. ends_file marks the last.
struct TextBlock {
  std::string source;                      // name of the file
  uint64_t offset_bytes = 0;               // position of text[0] in the uncompressed file
  uint64_t first_line = 1;                 // number of the line that contains text[0]
  TextFormat format = TextFormat::kLines;  // never kAuto
  bool ends_file = false;
  std::string text;
};

// Throws unless the block is UTF-8, with path and byte offset in the uncompressed file.
void check_utf8(const TextBlock& block);

// May be used by one thread at a time.
class TextSource {
 public:
  // `format` applies to text files. .jsonl files are JSON lines unless it is kJsonl, which applies
  // to all files. kAuto decides for each text file from its beginning.
  TextSource(std::vector<InputFile> files, TextFormat format);

  // Overwrites `block`, and returns false after the last one. Errors: an unreadable or damaged
  // file, an empty one (only white space) that was named, a JSON line longer than 256 MiB.
  bool read(TextBlock& block);
  // The size of the files on disk, or 0 if one has no size (standard input).
  uint64_t total_bytes() const { return total_bytes_; }
  // How many of these bytes have been read.
  uint64_t consumed_bytes() const;
  // The choices made by kAuto so far, each with the reason in its first file. Empty for other
  // formats.
  std::string decision() const;
  // How many empty files were found in folders so far, and the first. Empty if none was.
  std::string empty_files() const;

 private:
  void open_next();
  bool fill(size_t wanted_bytes);
  size_t cut_position() const;
  TextFormat format_of_file();

  // The files in which kAuto found a format.
  struct Found {
    int64_t files = 0;
    std::string reason, first_file;
  };

  std::vector<InputFile> files_;
  TextFormat format_;
  std::map<TextFormat, Found> found_;
  uint64_t total_bytes_ = 0, finished_bytes_ = 0;
  size_t next_file_ = 0;
  int64_t empty_files_ = 0;
  std::string first_empty_file_;
  std::unique_ptr<ByteStream> stream_;  // null between files
  std::string pending_;                 // read, not yet returned
  bool at_end_ = false;                 // stream_ has ended
  bool has_text_ = false;               // in this file so far
  uint64_t offset_bytes_ = 0, line_ = 1;
  TextFormat file_format_ = TextFormat::kLines;
};

}  // namespace onebit::corpus
