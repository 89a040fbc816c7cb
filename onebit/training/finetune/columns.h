// Selects the columns of a file by their roles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/training/finetune/record_reader.h"

namespace onebit::finetune {

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

  // The first usual name that the file has; empty if it has none. A key of JSON lines that is null
  // in the first record is none.
  std::string find(const ColumnRole& role);
  // The same, where such a key is better than none: its record is the one with the error.
  std::string find_required(const ColumnRole& role);
  // `given`, or else what find_required() finds. Error: nothing.
  std::string require_column(const std::string& given, const ColumnRole& role);
  // To be called at the end: makes the usual names before the found ones errors in later JSON lines
  // (RecordReader::expect_no()).
  void finish() { reader_.expect_no(missed_, fix_); }

 private:
  RecordReader& reader_;
  std::string fix_;
  std::vector<std::string> missed_;
};

// Columns of labelled texts. An empty one is found by its usual names: text, sentence1 or sentence;
// text_pair or sentence2, if present; label or labels. As in GLUE, premise and hypothesis,
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
// lines. Error: no column for the text, or for the label if it is required;
// `fix` ends the message ("give --text").
ChosenColumns choose_columns(RecordReader& reader, const Columns& columns, bool with_label,
                             const std::string& fix);

}  // namespace onebit::finetune
