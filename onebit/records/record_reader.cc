#include "onebit/records/record_reader.h"

#include <algorithm>

#include "onebit/base/counted.h"
#include "onebit/base/error.h"
#include "onebit/base/json.h"
#include "onebit/base/listed.h"
#include "onebit/base/nearest_word.h"
#include "onebit/base/number.h"
#include "onebit/corpus/byte_stream.h"
#include "onebit/records/csv_fields.h"

namespace onebit::records {
namespace {

constexpr size_t kMaxNamesListed = 30;

bool is_empty(const std::string& line) {
  return line.empty() || line == "\r";
}

void split_at_tabs(std::string& line, std::vector<std::string>& fields) {
  if (line.ends_with('\r')) line.pop_back();
  fields.clear();
  for (size_t begin = 0;;) {
    const size_t tab = std::min(line.find('\t', begin), line.size());
    fields.emplace_back(line, begin, tab - begin);
    if (tab == line.size()) return;
    begin = tab + 1;
  }
}

// A number of at least 1; 0 for anything else.
size_t number_of(const std::string& text) {
  return whole_number<size_t>(text).value_or(0);
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_scalar(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

Field field_of(const Json& value, const std::string& place, const std::string& key) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (is_scalar(value)) return {.kind = Field::Kind::kNumber, .text = value.dump()};
  require(value.is_array() && std::all_of(value.begin(), value.end(), is_scalar),
          "{}: `{}` is {}; it must be a string, a number or a list of them", place, key,
          value.is_null()    ? "null"
          : value.is_array() ? "a list of other things"
                             : "an object");
  Field field{.kind = Field::Kind::kList};
  for (const Json& one : value) field.list.push_back(scalar_text(one));
  return field;
}

}  // namespace

FileFormat format_of(const Path& path) {
  Path plain = path;
  if (corpus::packing_of_ending(path) != corpus::Packing::kNone) plain.replace_extension();
  const std::string name = plain.filename().string();
  if (name.ends_with(".tsv") || name.ends_with(".txt")) return FileFormat::kTsv;
  if (name.ends_with(".csv")) return FileFormat::kCsv;
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return FileFormat::kJsonLines;
  fail(
      "{}: unknown file ending: name it .tsv, .csv or .jsonl (followed by .gz, .xz, .zst, .bz2 or "
      ".lz4 if packed), or give --format",
      path.string());
}

RecordReader::RecordReader(const Path& path, const RecordOptions& options)
    : options_(options), lines_(path) {
  require(next_line(), "{}: is empty; it must contain examples, one per line", lines_.name());
  if (options.format == FileFormat::kJsonLines) {
    const Json first = parsed_line();
    for (const auto& [key, value] : first.items()) names_.push_back(key);
  } else if (options.has_header) {
    split_line();
    names_ = split_;
    fields_expected_ = names_.size();
    return;
  }
  is_peeked_ = true;
}

bool RecordReader::has_column(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

void RecordReader::select(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    if (options_.format != FileFormat::kJsonLines) {
      selected_.push_back(column_index(column));
      continue;
    }
    const std::string near = nearest_word(column, names_);
    require(has_column(column), "{}:{}: has no key `{}`{}; it has {}", name(), record_line_, column,
            near.empty() ? "" : fmt::format(" (did you mean `{}`?)", near),
            listed(names_, kMaxNamesListed));
    keys_.push_back(column);
  }
}

size_t RecordReader::column_index(const std::string& column) const {
  const auto named = std::find(names_.begin(), names_.end(), column);
  if (named != names_.end()) {
    require(std::find(named + 1, names_.end(), column) == names_.end(),
            "{}:1: two columns are called \"{}\"; name the column by its number", name(), column);
    return static_cast<size_t>(named - names_.begin());
  }
  const size_t number = number_of(column);
  const std::string near = nearest_word(column, names_);
  require(number > 0, "{}:1: there is no column \"{}\"{}; {}", name(), column,
          near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near),
          names_.empty() ? "the file is read without a header: give columns by number, from 1"
                         : "the header has " + listed(names_, kMaxNamesListed));
  require(fields_expected_ == 0 || number <= fields_expected_,
          "{}:1: there is no column {}: the header has {} columns", name(), number,
          fields_expected_);
  return number - 1;
}

bool RecordReader::next_line() {
  if (is_peeked_) {
    is_peeked_ = false;
    return true;
  }
  if (!has_held_) {
    empty_lines_ = 0;
    if (!lines_.next(held_)) return false;
    while (is_empty(held_)) {
      ++empty_lines_;
      if (!lines_.next(held_)) return false;
    }
    has_held_ = true;
  }
  if (options_.format == FileFormat::kJsonLines) empty_lines_ = 0;
  record_line_ = lines_.number() - empty_lines_;
  if (empty_lines_ > 0) {
    --empty_lines_;
    line_.clear();
    return true;
  }
  line_.swap(held_);
  has_held_ = false;
  return true;
}

void RecordReader::split_line() {
  if (options_.format == FileFormat::kTsv) {
    split_at_tabs(line_, split_);
  } else {
    csv_fields(lines_, line_, split_);
  }
}

std::string RecordReader::place() const {
  return fmt::format("{}:{}", name(), record_line_);
}

void RecordReader::check_count() {
  if (fields_expected_ == 0) {
    const size_t most = *std::max_element(selected_.begin(), selected_.end());
    require(most < split_.size(), "{}: there is no column {}: the line has {} fields", place(),
            most + 1, split_.size());
    fields_expected_ = split_.size();
  }
  const bool is_tsv = options_.format == FileFormat::kTsv;
  require(split_.size() == fields_expected_, "{}: has {}, {} has {}{}", place(),
          counted(static_cast<int64_t>(split_.size()), "field"),
          names_.empty() ? "the first line" : "the header", fields_expected_,
          is_tsv
              ? ": a tab or a line end inside a text? TSV has no quotes: remove it, or use CSV or "
                "JSON lines"
              : ": put quotes around a text with commas");
}

bool RecordReader::take_columns(std::vector<Field>& fields) {
  split_line();
  if (options_.skip_short) {
    const size_t most = *std::max_element(selected_.begin(), selected_.end());
    if (split_.size() <= most) {
      ++skipped_;
      return false;
    }
  } else {
    check_count();
  }
  fields.resize(selected_.size());
  for (size_t i = 0; i < selected_.size(); ++i) {
    fields[i].kind = Field::Kind::kText;
    fields[i].text.swap(split_[selected_[i]]);
  }
  return true;
}

Json RecordReader::parsed_line() const {
  Json record = parse_json(line_, place());
  require(record.is_object(), "{}: is not a JSON object: every line must be one", place());
  return record;
}

void RecordReader::take_keys(std::vector<Field>& fields) const {
  const Json record = parsed_line();
  fields.clear();
  for (const std::string& key : keys_) {
    const auto found = record.find(key);
    require(found != record.end(), "{}: has no key `{}`", place(), key);
    fields.push_back(field_of(*found, place(), key));
  }
}

bool RecordReader::next(std::vector<Field>& fields) {
  ONEBIT_INVARIANT(!selected_.empty() || !keys_.empty());
  while (next_line()) {
    if (options_.format == FileFormat::kJsonLines) {
      take_keys(fields);
      return true;
    }
    if (take_columns(fields)) return true;
  }
  return false;
}

}  // namespace onebit::records
