// Selects the columns of a file that contain text and label.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "onebit/training/finetune/record_reader.h"

namespace onebit::finetune {

// Each is a name in the header, a number from 1, or a JSON key. An empty one is found by its usual
// names: text, sentence1 or sentence; text_pair or sentence2, if present; label or labels. As in
// GLUE, premise and hypothesis, question1 and question2, and question and sentence are pairs, too.
struct Columns {
  std::string text, text_pair, label;
  std::optional<bool> header;  // absent: the file has one unless all columns are given by number

  bool has_header() const;
};

struct ChosenColumns {
  std::string text, text_pair, label;  // text_pair and label may be empty

  // In the order of the fields that a reader returns.
  std::vector<std::string> list() const;
};

// Looks for columns by their usual names.
class UsualNames {
 public:
  explicit UsualNames(const RecordReader& reader) : reader_(reader) {}

  // The first of `names` that the file has; empty if it has none. A key of JSON lines that is null
  // in the first record is none.
  std::string find(std::initializer_list<const char*> names);
  // The same, where such a key is better than none.
  std::string find_required(std::initializer_list<const char*> names);
  // The names that would have been taken before the found ones: for RecordReader::expect_no().
  const std::vector<std::string>& missed() const { return missed_; }

 private:
  const RecordReader& reader_;
  std::vector<std::string> missed_;
};

// Chooses the columns of a file, and makes the usual names that were not found errors in later JSON
// lines. Error: no column for the text, or for the label if it is required;
// `fix` ends the message ("give --text").
ChosenColumns choose_columns(RecordReader& reader, const Columns& columns, bool with_label,
                             const std::string& fix);

}  // namespace onebit::finetune
