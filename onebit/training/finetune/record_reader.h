// Reads the records of a TSV, CSV or JSON-lines file one after the other. TSV has no quotes: a tab
// always ends a field, as in GLUE's files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::finetune {

// The fields of one record of a CSV file (RFC 4180): separated by commas, and quoted if they
// contain a comma, a quote (doubled) or a line end.

// Splits `line`, which was read from `lines`. A quoted field that is not closed in it continues in
// the next lines. Overwrites `fields`. Errors, with file:line and the field's number: a quote that
// is never closed, text after a closing quote.
void csv_fields(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields);

enum class FileFormat { kTsv, kCsv, kJsonLines };

// The format by the file's ending: .tsv, .txt, .csv, .jsonl, .ndjson, also followed by the ending
// of a compressed file (corpus/byte_stream.h). Error: another ending.
FileFormat format_of(const Path& path);

struct Field {
  enum class Kind { kText, kNumber, kList };  // kNumber also for JSON's true and false
  Kind kind = Kind::kText;
  std::string text = {};               // a number as in the file, but 3 for 3.0
  std::vector<std::string> list = {};  // of a JSON array of strings and numbers
  bool has_values = false;             // list: one is true or false, or has a decimal point
};

struct RecordOptions {
  FileFormat format = FileFormat::kTsv;
  bool has_header = true;  // of TSV and CSV
  // Records with too few fields are counted and left out, and surplus fields are ignored: GLUE's
  // files are published like this.
  bool skip_short = false;
  // Fields that such records lack are empty, for predictions, which need every record.
  bool fill_short = false;
  corpus::LeftOut left_out = corpus::LeftOut::kNothing;
};

using KeyRule = bool (*)(const std::string& key);

class RecordReader {
 public:
  // Reads the names of the columns. Errors: unreadable, empty.
  RecordReader(const Path& path, const RecordOptions& options);

  // The names in the header, or the keys of the first JSON line. Empty without a header.
  const std::vector<std::string>& names() const { return names_; }
  bool has_column(const std::string& name) const;
  // The same, except for a key that is null in the first JSON line.
  bool has_value(const std::string& name) const;
  // Selects the fields that next() returns: columns by name, by number from 1, or by key. Errors: a
  // column that does not exist (lists the ones that do), or a name that two columns have.
  void select(const std::vector<std::string>& columns);
  // Makes each of `keys` an error (corpus::MisreadFile) in a JSON line that gives it a value: the
  // choice of columns looked for it in the first line, which lacks it. So is any other key that the
  // first line lacks and for which `rule` holds (null: none). `fix` ends the message.
  void expect_no(std::vector<std::string> keys, KeyRule rule, std::string fix);

  // The named columns, or keys of the first JSON line, that are not selected: "train.tsv: some
  // columns are not read: id, url; to read others, FIX". Empty if there are none.
  std::string unread(const std::string& fix) const;

  // Reads the next record's selected fields, and returns false after the last. Empty lines at the
  // end of the file are not records. Errors, with file:line: another number of fields than the
  // header (or the first record) has, not JSON, a missing key, or a value of another kind.
  bool next(std::vector<Field>& fields);
  // Leaves out the record that next() has returned, in which its user found `error`.
  void leave_out(const Error& error) { left_out_.add(error); }
  const corpus::LeftOutRecords& left_out() const { return left_out_; }
  // The place of the record that next() has returned: "train.tsv:12".
  std::string place() const;
  uint64_t line() const { return record_line_; }
  const std::string& name() const { return lines_.name(); }
  // Records with too few fields, which were left out or filled.
  int64_t skipped() const { return skipped_; }

 private:
  bool is_empty_line(const std::string& line) const;
  bool next_line();
  bool take_record(std::vector<Field>& fields);
  void read_first_keys();
  void split_line();
  bool take_columns(std::vector<Field>& fields);
  void check_count();
  bool is_unexpected(const std::string& key) const;
  void take_keys(std::vector<Field>& fields) const;
  Json parsed_line() const;
  size_t column_index(const std::string& column) const;

  RecordOptions options_;
  corpus::FileLines lines_;
  std::vector<std::string> names_, null_names_;
  std::vector<std::string> keys_;  // selected keys of JSON lines
  std::vector<std::string> unexpected_;
  KeyRule unexpected_rule_ = nullptr;
  std::string unexpected_fix_;
  uint64_t first_line_ = 0;       // of the header or of the first record; 0: not read yet
  std::vector<size_t> selected_;  // of TSV and CSV
  size_t fields_expected_ = 0;    // 0: not known yet
  std::string line_;
  std::vector<std::string> split_;
  uint64_t record_line_ = 0;
  bool is_peeked_ = false;  // line_ was read for its names and has not been returned yet
  // A line that was read ahead, and the number of empty lines before it.
  std::string held_;
  bool has_held_ = false;
  uint64_t empty_lines_ = 0;
  int64_t skipped_ = 0;
  corpus::LeftOutRecords left_out_;
};

}  // namespace onebit::finetune
