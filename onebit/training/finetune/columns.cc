#include "onebit/training/finetune/columns.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::finetune {
namespace {

bool is_number(const std::string& column) {
  return !column.empty() && column.find_first_not_of("0123456789") == std::string::npos;
}

void require_found(const std::string& column, const RecordReader& reader, const char* role,
                   const std::string& usual, const std::string& fix) {
  require(!column.empty(), "{}: which column contains the {}? {}; {}{}", reader.name(), role,
          reader.names().empty() ? "the file is read without a header"
                                 : fmt::format("None is called {}: there are {}", usual,
                                               fmt::join(reader.names(), ", ")),
          fix,
          reader.name().ends_with(".txt")
              ? "; a .txt file is read as TSV whose first line has the names of the columns: for a "
                "text per line give --text 1"
              : "");
}

}  // namespace

bool Columns::has_header() const {
  if (header) return *header;
  bool any_number = false;
  for (const std::string& column : {text, text_pair, label}) {
    if (!column.empty() && !is_number(column)) return true;
    any_number = any_number || !column.empty();
  }
  return !any_number;
}

std::vector<std::string> ChosenColumns::list() const {
  std::vector<std::string> columns = {text};
  if (!text_pair.empty()) columns.push_back(text_pair);
  if (!label.empty()) columns.push_back(label);
  return columns;
}

std::string UsualNames::find(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (reader_.has_value(name)) return name;
    missed_.emplace_back(name);
  }
  return "";
}

std::string UsualNames::find_required(std::initializer_list<const char*> names) {
  std::string found = find(names);
  // A key that is null in the first record has its error there.
  for (const char* name : names) {
    if (found.empty() && reader_.has_column(name)) found = name;
  }
  std::erase(missed_, found);
  return found;
}

namespace {

// The second text beside the usual names of the first one. The pairs of names are those of GLUE's
// tasks.
void find_pair(UsualNames& usual, ChosenColumns& chosen) {
  if (chosen.text == "premise") {
    chosen.text_pair = usual.find({"hypothesis"});
  } else if (chosen.text == "question1") {
    chosen.text_pair = usual.find({"question2"});
  } else {
    chosen.text_pair = usual.find({"text_pair", "sentence2"});
  }
  if (chosen.text != "sentence" || !chosen.text_pair.empty()) return;
  const std::string question = usual.find({"question"});
  if (question.empty()) return;
  chosen.text_pair = chosen.text;
  chosen.text = question;
}

}  // namespace

ChosenColumns choose_columns(RecordReader& reader, const Columns& columns, bool with_label,
                             const std::string& fix) {
  UsualNames usual(reader);
  ChosenColumns chosen = {.text = columns.text, .text_pair = columns.text_pair, .label = ""};
  // If the user names the column of the text, there is no second one unless it is named too.
  if (chosen.text.empty()) {
    chosen.text = usual.find_required({"text", "sentence1", "sentence", "premise", "question1"});
    require_found(chosen.text, reader, "text", "text, sentence, sentence1, premise or question1",
                  fix);
    if (chosen.text_pair.empty()) find_pair(usual, chosen);
  }
  if (with_label) {
    chosen.label = columns.label.empty() ? usual.find_required({"label", "labels"}) : columns.label;
    require_found(chosen.label, reader, "label", "label or labels", fix);
  }
  reader.expect_no(usual.missed(), fix);
  return chosen;
}

}  // namespace onebit::finetune
