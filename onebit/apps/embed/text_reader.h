// Reads texts to be encoded one after the other: memory does not depend on the size of the file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/file_lines.h"
#include "onebit/training/finetune/record_reader.h"

namespace onebit::embed {

enum class TextFormat { kLines, kTsv, kCsv, kJsonLines };

struct TextLayout {
  std::optional<TextFormat> format;  // absent: by the file's ending; .txt: a text per line
  std::string column;                // of the text, unless kLines; empty: by its usual names
  std::optional<bool> header;        // of TSV and CSV; absent: unless the column is a number
};

class TextReader {
 public:
  // Errors: those of RecordReader and choose_text(); an ending without a format. A file of lines
  // may be empty.
  TextReader(const Path& path, const TextLayout& layout);

  // Overwrites `text`; false after the last. Errors, with file:line: those of RecordReader; a text
  // that is not a string.
  bool next(std::string& text);
  const std::string& name() const;

 private:
  std::unique_ptr<corpus::FileLines> lines_;  // either this or records_
  std::unique_ptr<finetune::RecordReader> records_;
  std::string column_;
  std::vector<finetune::Field> fields_;
};

}  // namespace onebit::embed
