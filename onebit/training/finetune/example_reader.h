// Reads labelled texts, or pairs of texts, from a file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/training/finetune/columns.h"

namespace onebit::finetune {

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
  // Errors: those of RecordReader and choose_columns().
  ExampleReader(const Path& path, const FileLayout& layout, bool with_labels);

  // Overwrites `example`; false after the last. Errors, with file:line: those of RecordReader; a
  // text that is not a string.
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

// Reads a whole file. Errors: it contains no example; those of `check`, where layout.left_out does
// not leave such examples out.
Examples read_examples(const Path& path, const FileLayout& layout, const ExampleCheck& check = {});

// A checksum of texts and labels in order: shows whether a run is resumed with the same data.
uint32_t checksum(const Examples& examples);

}  // namespace onebit::finetune
