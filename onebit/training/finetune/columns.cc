#include "onebit/training/finetune/columns.h"

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"

namespace onebit::finetune {
namespace {

constexpr size_t kMaxNamesListed = 30;

const ColumnRole kText = {"text", {"text", "sentence1", "sentence", "premise", "question1"}};
const ColumnRole kLabel = {"label", {"label", "labels"}};
// The second text beside the usual names of the first one. The pairs of names are those of GLUE's
// tasks.
const ColumnRole kPair = {"second text", {"text_pair", "sentence2"}};
const ColumnRole kHypothesis = {"hypothesis", {"hypothesis"}};
const ColumnRole kSecondQuestion = {"second question", {"question2"}};
const ColumnRole kQuestion = {"question", {"question"}};

bool is_number(std::string_view column) {
  return !column.empty() && column.find_first_not_of("0123456789") == std::string_view::npos;
}

// "text, sentence1 or sentence".
std::string in_words(const std::vector<const char*>& names) {
  const auto last = names.end() - 1;
  return names.size() == 1 ? *last
                           : fmt::format("{} or {}", fmt::join(names.begin(), last, ", "), *last);
}

void find_pair(ColumnFinder& finder, ChosenColumns& chosen) {
  chosen.text_pair = finder.find(chosen.text == "premise"     ? kHypothesis
                                 : chosen.text == "question1" ? kSecondQuestion
                                                              : kPair);
  if (chosen.text != "sentence" || !chosen.text_pair.empty()) return;
  const std::string question = finder.find(kQuestion);
  if (question.empty()) return;
  chosen.text_pair = chosen.text;
  chosen.text = question;
}

}  // namespace

bool has_header(std::optional<bool> chosen, const std::vector<std::string_view>& columns) {
  if (chosen) return *chosen;
  bool any_number = false;
  for (const std::string_view column : columns) {
    if (!column.empty() && !is_number(column)) return true;
    any_number = any_number || !column.empty();
  }
  return !any_number;
}

std::string ColumnFinder::find(const ColumnRole& role) {
  for (const char* name : role.usual_names) {
    if (reader_.has_value(name)) return name;
    missed_.emplace_back(name);
  }
  return "";
}

std::string ColumnFinder::find_required(const ColumnRole& role) {
  std::string found = find(role);
  for (const char* name : role.usual_names) {
    if (found.empty() && reader_.has_column(name)) found = name;
  }
  std::erase(missed_, found);
  return found;
}

std::string ColumnFinder::require_column(const std::string& given, const ColumnRole& role) {
  if (!given.empty()) return given;
  std::string found = find_required(role);
  require(!found.empty(), "{}: which column contains the {}? {}; {}{}", reader_.name(), role.name,
          reader_.names().empty()
              ? "The file is read without a header"
              : fmt::format("None is called {}: there are {}", in_words(role.usual_names),
                            listed(reader_.names(), kMaxNamesListed)),
          fix_,
          reader_.name().ends_with(".txt")
              ? "; a .txt file is read as TSV whose first line has the names of the columns: for a "
                "text per line give the number of its column, 1"
              : "");
  return found;
}

std::vector<std::string> ChosenColumns::list() const {
  std::vector<std::string> columns = {text};
  if (!text_pair.empty()) columns.push_back(text_pair);
  if (!label.empty()) columns.push_back(label);
  return columns;
}

ChosenColumns choose_columns(RecordReader& reader, const Columns& columns, bool with_label,
                             const std::string& fix) {
  ColumnFinder finder(reader, fix);
  ChosenColumns chosen = {.text = finder.require_column(columns.text, kText),
                          .text_pair = columns.text_pair,
                          .label = ""};
  // If the user names the column of the text, there is no second one unless it is named too.
  if (columns.text.empty() && chosen.text_pair.empty()) find_pair(finder, chosen);
  if (with_label) chosen.label = finder.require_column(columns.label, kLabel);
  finder.finish();
  return chosen;
}

}  // namespace onebit::finetune
