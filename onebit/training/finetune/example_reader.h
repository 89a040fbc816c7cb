// Reads labelled texts, or pairs of texts, from a file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/training/finetune/record_reader.h"

namespace onebit::finetune {

// Selects the columns of a file by their roles.

// What a column contains, and the names that such columns usually have, the first one first.
struct ColumnRole {
  const char* name;  // in errors: "label"
  std::vector<const char*> usual_names;
};

// Whether a file has a header: as chosen, else unless all given columns are numbers. A column that
// is not given is empty.
bool has_header(std::optional<bool> chosen, const std::vector<std::string_view>& columns);

// Finds the columns of a file. A given column is a name in the header, a number from 1, or a JSON
// key.
class ColumnFinder {
 public:
  // `fix` ends errors ("give --text").
  ColumnFinder(RecordReader& reader, std::string fix) : reader_(reader), fix_(std::move(fix)) {}

  // The usual name that the file has. Empty if it has none. A key of JSON lines that is null in the
  // first record is none. Error: the file has several.
  std::string find(const ColumnRole& role);
  // The same, where such a key is better than none: its record is the one with the error.
  std::string find_required(const ColumnRole& role);
  // `given`, or else what find_required() finds. Errors: nothing, several.
  std::string require_column(const std::string& given, const ColumnRole& role);
  // Makes other names errors in later JSON lines, too, unless the first record has them.
  void expect_no(KeyRule is_unexpected) { rule_ = is_unexpected; }
  // To be called at the end: makes the usual names that the first record lacks errors in later JSON
  // lines (RecordReader::expect_no()).
  void finish() { reader_.expect_no(missed_, rule_, fix_); }

 private:
  RecordReader& reader_;
  std::string fix_;
  std::vector<std::string> missed_;
  KeyRule rule_ = nullptr;
};

// Columns of labelled texts. An empty one is found by its usual names: text, sentence1 or sentence,
// then text_pair or sentence2, if present, and label or labels. As in GLUE, premise and hypothesis,
// question1 and question2, and question and sentence are pairs, too.
struct Columns {
  std::string text, text_pair, label;
  std::optional<bool> header;  // absent: the file has one unless all columns are given by number

  bool has_header() const { return finetune::has_header(header, {text, text_pair, label}); }
};

struct ChosenColumns {
  std::string text, text_pair, label;  // text_pair and label may be empty

  // In the order of the fields that a reader returns.
  std::vector<std::string> list() const;
};

// Chooses the columns of a file, and makes the usual names that were not found errors in later JSON
// lines. Error: no column for the text, or for the label if it is required.
// `fix` ends the message ("give --text").
ChosenColumns choose_columns(RecordReader& reader, const Columns& columns, bool with_label,
                             const std::string& fix);

struct FileLayout {
  std::optional<FileFormat> format;  // absent: by the file's ending
  Columns columns;
  bool skip_short = false, fill_short = false;  // see RecordOptions
  corpus::LeftOut left_out = corpus::LeftOut::kNothing;
  std::string column_fix = "set data.text, data.text_pair and data.label";  // for errors
};

struct Example {
  std::string text, text_pair;
  Field label;        // empty if it was not requested
  uint64_t line = 0;  // in its file
};

// Reads one example at a time: memory does not depend on the size of the file.
class ExampleReader {
 public:
  // Throws the errors of RecordReader and choose_columns().
  ExampleReader(const Path& path, const FileLayout& layout, bool with_labels);

  // Overwrites `example`, and returns false after the last. Errors, with file:line: as for
  // RecordReader, and a text that is not a string.
  bool next(Example& example);

  const std::string& name() const { return records_.name(); }
  bool has_pairs() const { return !columns_.text_pair.empty(); }
  const ChosenColumns& columns() const { return columns_; }
  // The place of the example that next() has returned: "train.tsv:12".
  std::string place() const { return records_.place(); }
  // Leaves out the example that next() has returned, in which its user found `error`.
  void leave_out(const Error& error) { records_.leave_out(error); }
  int64_t skipped() const { return records_.skipped(); }
  const corpus::LeftOutRecords& left_out() const { return records_.left_out(); }
  std::string unread(const std::string& fix) const { return records_.unread(fix); }

 private:
  void take(Example& example);
  void take_text(Field& field, const std::string& column, std::string& text) const;

  RecordReader records_;
  ChosenColumns columns_;
  std::vector<Field> fields_;
};

struct Examples {
  std::string source;  // the file, for errors
  std::vector<Example> all;
  bool has_pairs = false;
  int64_t skipped = 0;
  std::string left_out;  // LeftOutRecords::summary()
  std::string unread;    // RecordReader::unread() if the columns were found by their usual names
};

// Throws an Error, with the place, for an example that its application cannot use.
using ExampleCheck = std::function<void(const Example& example, const std::string& place)>;

struct ExampleChecks {
  ExampleCheck one = {};  // of each example when it is read
  // Makes a check that depends on what all examples have. It may be empty.
  std::function<ExampleCheck(const Examples& all)> among_all = {};
};

// Reads a whole file. Errors: it contains no example, or what a check throws, where layout.left_out
// does not leave such examples out.
Examples read_examples(const Path& path, const FileLayout& layout,
                       const ExampleChecks& checks = {});

// A checksum of texts and labels in order: shows whether a run is resumed with the same data.
uint32_t checksum(const Examples& examples);

}  // namespace onebit::finetune
