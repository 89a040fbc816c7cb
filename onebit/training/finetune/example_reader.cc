#include "onebit/training/finetune/example_reader.h"

#include <algorithm>

#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

namespace onebit::finetune {

namespace {

constexpr size_t kMaxNamesListed = 30;

const ColumnRole kText = {"text", {"text", "sentence1", "sentence", "premise", "question1"}};
const ColumnRole kLabel = {"label", {"label", "labels"}};
// The second text beside the usual names of the first one. The pairs of names are from GLUE's
// tasks.
const ColumnRole kPair = {"second text", {"text_pair", "sentence2"}};
const ColumnRole kHypothesis = {"hypothesis", {"hypothesis"}};
const ColumnRole kSecondQuestion = {"second question", {"question2"}};
const ColumnRole kQuestion = {"question", {"question"}};

bool is_number(std::string_view column) {
  return !column.empty() && !has_leading_zeros(column) &&
         column.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether the names of several columns were read as one.
bool looks_unsplit(const std::vector<std::string>& names) {
  return names.size() == 1 && names.front().find_first_of(";,|\t") != std::string::npos;
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
  std::string found;
  for (const char* name : role.usual_names) {
    if (!reader_.has_value(name)) {
      missed_.emplace_back(name);
      continue;
    }
    require(found.empty(), "{}: which column contains the {}? Both {} and {} can; {}",
            reader_.name(), role.name, found, name, fix_);
    found = name;
  }
  return found;
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
          looks_unsplit(reader_.names())
              ? "; the only column looks like several: has the file another separator?"
          : reader_.name().ends_with(".txt")
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

namespace {

RecordOptions record_options(const Path& path, const FileLayout& layout) {
  return {.format = layout.format ? *layout.format : format_of(path),
          .has_header = layout.columns.has_header(),
          .skip_short = layout.skip_short,
          .fill_short = layout.fill_short,
          .left_out = layout.left_out};
}

}  // namespace

ExampleReader::ExampleReader(const Path& path, const FileLayout& layout, bool with_labels)
    : records_(path, record_options(path, layout)),
      columns_(choose_columns(records_, layout.columns, with_labels, layout.column_fix)) {
  records_.select(columns_.list());
}

void ExampleReader::take_text(Field& field, const std::string& column, std::string& text) const {
  require(field.kind == Field::Kind::kText, "{}: `{}` is {}; a text must be a string",
          records_.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "the number " + field.text);
  text.swap(field.text);
}

bool ExampleReader::next(Example& example) {
  while (records_.next(fields_)) {
    try {
      take(example);
      return true;
    } catch (const Error& error) {
      records_.leave_out(error);
    }
  }
  return false;
}

void ExampleReader::take(Example& example) {
  take_text(fields_[0], columns_.text, example.text);
  if (has_pairs()) take_text(fields_[1], columns_.text_pair, example.text_pair);
  if (!columns_.label.empty()) example.label = std::move(fields_.back());
  example.line = records_.line();
}

namespace {

void check_among_all(const ExampleChecks& checks, ExampleReader& reader, Examples& examples) {
  const ExampleCheck check = checks.among_all ? checks.among_all(examples) : ExampleCheck();
  if (!check) return;
  std::erase_if(examples.all, [&](const Example& example) {
    try {
      check(example, fmt::format("{}:{}", examples.source, example.line));
      return false;
    } catch (const Error& error) {
      reader.leave_out(error);
      return true;
    }
  });
}

}  // namespace

Examples read_examples(const Path& path, const FileLayout& layout, const ExampleChecks& checks) {
  ExampleReader reader(path, layout, true);
  Examples examples = {.source = reader.name(), .all = {}, .has_pairs = reader.has_pairs()};
  for (Example example; reader.next(example);) {
    try {
      if (checks.one) checks.one(example, reader.place());
      examples.all.push_back(std::move(example));
    } catch (const Error& error) {
      reader.leave_out(error);
    }
  }
  check_among_all(checks, reader, examples);
  examples.skipped = reader.skipped();
  examples.left_out = reader.left_out().summary();
  if (layout.columns.text.empty()) examples.unread = reader.unread(layout.column_fix);
  require(
      !examples.all.empty(), "{}: has no example: {}", examples.source,
      !examples.left_out.empty() ? examples.left_out
      : examples.skipped > 0
          ? fmt::format("{} lines were left out, as they have too few columns", examples.skipped)
          : "there is nothing after the header (for a file without one, set data.header to no)");
  return examples;
}

uint32_t checksum(const Examples& examples) {
  uint32_t crc = 0;
  // The size precedes the text, so that moving text from one field to the next changes the
  // checksum.
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    crc = crc32_of(&size, sizeof(size), crc);
    crc = crc32_of(text.data(), text.size(), crc);
  };
  for (const Example& example : examples.all) {
    add(example.text);
    add(example.text_pair);
    add(example.label.text);
    for (const std::string& label : example.label.list) add(label);
  }
  return crc;
}

}  // namespace onebit::finetune
