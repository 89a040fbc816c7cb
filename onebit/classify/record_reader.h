// Records of a TSV, CSV or JSON-lines file, one after the other. TSV knows no quotes: a tab ends a
// field, whatever is in it, as in GLUE's files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/base/json_fwd.h"
#include "onebit/corpus/file_lines.h"

namespace onebit::classify {

enum class FileFormat { kTsv, kCsv, kJsonLines };

// By the ending: .tsv, .txt, .csv, .jsonl, .ndjson, also with that of a packed file behind
// (corpus/byte_stream.h). Error: another one.
FileFormat format_of(const Path& path);

struct Field {
  enum class Kind { kText, kNumber, kList };  // kNumber also for JSON's true and false
  Kind kind = Kind::kText;
  std::string text = {};               // a number as it is written
  std::vector<std::string> list = {};  // of a JSON array of strings and numbers
};

struct RecordOptions {
  FileFormat format = FileFormat::kTsv;
  bool has_header = true;  // of TSV and CSV
  // Records with too few fields are counted and left out, and fields behind the last are not looked
  // at: GLUE's files are published so.
  bool skip_short = false;
};

class RecordReader {
 public:
  // Reads the names of the columns. Errors: unreadable, empty.
  RecordReader(const Path& path, const RecordOptions& options);

  // Of the header, or the keys of the first JSON line; empty without a header.
  const std::vector<std::string>& names() const { return names_; }
  bool has_column(const std::string& name) const;
  // The fields that next() gives: columns by name, by number from 1, or by key. Errors: a column
  // that is not there, with those that are; a name that two columns have.
  void select(const std::vector<std::string>& columns);

  // The next record's selected fields; false after the last. Lines without a character at the end
  // of the file are no records. Errors, with file:line: another number of fields than the header
  // (or the first record) has; not JSON; a key that is missing; a value of another kind.
  bool next(std::vector<Field>& fields);
  // Of the record that next() has given: "train.tsv:12".
  std::string place() const;
  uint64_t line() const { return record_line_; }
  const std::string& name() const { return lines_.name(); }
  int64_t skipped() const { return skipped_; }

 private:
  bool next_line();
  void split_line();
  bool take_columns(std::vector<Field>& fields);
  void check_count();
  void take_keys(std::vector<Field>& fields) const;
  Json parsed_line() const;
  size_t column_index(const std::string& column) const;

  RecordOptions options_;
  corpus::FileLines lines_;
  std::vector<std::string> names_;
  std::vector<std::string> keys_;  // selected, of JSON lines
  std::vector<size_t> selected_;   // of TSV and CSV
  size_t fields_expected_ = 0;     // 0: not known yet
  std::string line_;
  std::vector<std::string> split_;
  uint64_t record_line_ = 0;
  bool is_peeked_ = false;  // line_ was read for its names and is still to be given
  // A line that was read ahead, and how many empty ones come before it.
  std::string held_;
  bool has_held_ = false;
  uint64_t empty_lines_ = 0;
  int64_t skipped_ = 0;
};

}  // namespace onebit::classify
