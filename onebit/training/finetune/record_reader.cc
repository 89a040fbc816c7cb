#include "onebit/training/finetune/record_reader.h"

#include <algorithm>
#include <utility>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/corpus/data_json.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

namespace onebit::finetune {

namespace {

class CsvRecord {
 public:
  CsvRecord(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields)
      : lines_(lines), line_(line), fields_(fields), place_(lines.place()) {}

  void split() {
    fields_.clear();
    size_t at = 0;
    while (true) {
      std::string& field = fields_.emplace_back();
      at = at < line_.size() && line_[at] == '"' ? quoted(at + 1, field) : plain(at, field);
      if (at >= end()) return;
      ++at;  // the comma
    }
  }

 private:
  // The end of the line, without the "\r" of a "\r\n".
  size_t end() const { return line_.ends_with('\r') ? line_.size() - 1 : line_.size(); }

  size_t plain(size_t begin, std::string& field) const {
    const size_t comma = std::min(line_.find(',', begin), end());
    field.assign(line_, begin, comma - begin);
    return comma;
  }

  // Returns the position after the closing quote. line_ may then be a later line.
  size_t quoted(size_t at, std::string& field) {
    while (true) {
      const size_t quote = line_.find('"', at);
      if (quote == std::string::npos) {
        field.append(line_, at);
        field += '\n';
        require(lines_.next(line_), "{}: the quote that opens field {} is never closed", place_,
                fields_.size());
        at = 0;
      } else if (quote + 1 < line_.size() && line_[quote + 1] == '"') {
        field.append(line_, at, quote + 1 - at);
        at = quote + 2;
      } else {
        field.append(line_, at, quote - at);
        require(
            quote + 1 >= end() || line_[quote + 1] == ',',
            "{}: field {} continues after its closing quote; write a quote inside a quoted field "
            "twice (\"\")",
            place_, fields_.size());
        return quote + 1;
      }
    }
  }

  corpus::FileLines& lines_;
  std::string& line_;
  std::vector<std::string>& fields_;
  std::string place_;
};

}  // namespace

void csv_fields(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields) {
  CsvRecord(lines, line, fields).split();
}

namespace {

constexpr size_t kMaxNamesListed = 30;

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

// Whether the first line of a record ends a field.
bool has_several_fields(std::string_view line, FileFormat format) {
  if (format == FileFormat::kTsv) return line.find('\t') != std::string_view::npos;
  bool is_quoted = false;
  return std::any_of(line.begin(), line.end(), [&](char c) {
    is_quoted ^= c == '"';
    return c == ',' && !is_quoted;
  });
}

// A number of at least 1, or 0 for anything else.
size_t number_of(const std::string& text) {
  return has_leading_zeros(text) ? 0 : whole_number<size_t>(text).value_or(0);
}

// Whole numbers are labels, and pandas writes them as 3.0 in a column with gaps.
std::string scalar_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float() && is_whole(value)) {
    return std::to_string(static_cast<int64_t>(value.get<double>()));
  }
  return json_text(value);
}

bool is_scalar(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

Field field_of(const Json& value, const std::string& place, const std::string& key) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (is_scalar(value)) return {.kind = Field::Kind::kNumber, .text = scalar_text(value)};
  constexpr const char* kAllowed = "it must be a string, a number or a list of them";
  if (value.is_null()) {
    throw corpus::MissingValue(
        fmt::format("{}: `{}` is null or not a number (NaN); {}", place, key, kAllowed));
  }
  require(value.is_array() && std::all_of(value.begin(), value.end(), is_scalar),
          "{}: `{}` is {}; {}", place, key,
          value.is_array() ? "a list of other things" : "an object", kAllowed);
  Field field{.kind = Field::Kind::kList};
  for (const Json& one : value) {
    field.list.push_back(scalar_text(one));
    field.has_values |= one.is_boolean() || one.is_number_float();
  }
  return field;
}

}  // namespace

FileFormat format_of(const Path& path) {
  const std::string name = corpus::unpacked_name(path).filename().string();
  if (name.ends_with(".tsv") || name.ends_with(".txt")) return FileFormat::kTsv;
  if (name.ends_with(".csv")) return FileFormat::kCsv;
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return FileFormat::kJsonLines;
  fail(
      "{}: unknown file ending: name it .tsv, .csv or .jsonl (followed by .gz, .xz, .zst, .bz2 or "
      ".lz4 if packed), or give the format",
      path.string());
}

RecordReader::RecordReader(const Path& path, const RecordOptions& options)
    : options_(options), lines_(path), left_out_(options.left_out) {
  require(next_line(), "{}: is empty; it must contain examples, one per line", lines_.name());
  const bool is_json = options.format == FileFormat::kJsonLines;
  if (is_json) {
    read_first_keys();
  } else if (options.has_header) {
    while (is_empty_line(line_)) next_line();  // the last line is not empty
    split_line();
    names_ = split_;
    fields_expected_ = names_.size();
  }
  first_line_ = record_line_;
  is_peeked_ = is_json || !options.has_header;
}

void RecordReader::read_first_keys() {
  for (;;) {
    try {
      const Json first = parsed_line();
      require(!first.empty(), "{}: is an object without any key", place());
      for (const auto& [key, value] : first.items()) {
        names_.push_back(key);
        if (value.is_null()) null_names_.push_back(key);
      }
      return;
    } catch (const Error& error) {
      leave_out(error);
      require(next_line(), "{}: contains no record that can be used; {}", name(),
              left_out_.summary());
    }
  }
}

bool RecordReader::has_column(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

bool RecordReader::has_value(const std::string& name) const {
  return has_column(name) &&
         std::find(null_names_.begin(), null_names_.end(), name) == null_names_.end();
}

void RecordReader::expect_no(std::vector<std::string> keys, KeyRule rule, std::string fix) {
  if (options_.format != FileFormat::kJsonLines) return;
  unexpected_ = std::move(keys);
  unexpected_rule_ = rule;
  unexpected_fix_ = std::move(fix);
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
            "{}:{}: two columns are called \"{}\"; name the column by its number", name(),
            first_line_, column);
    return static_cast<size_t>(named - names_.begin());
  }
  const size_t number = number_of(column);
  const std::string near = nearest_word(column, names_);
  require(number > 0, "{}:{}: there is no column \"{}\"{}; {}", name(), first_line_, column,
          near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near),
          names_.empty() ? "the file is read without a header: give columns by number, from 1"
                         : "the header has " + listed(names_, kMaxNamesListed));
  require(fields_expected_ == 0 || number <= fields_expected_,
          "{}:{}: there is no column {}: the header has {} columns", name(), first_line_, number,
          fields_expected_);
  return number - 1;
}

std::string RecordReader::unread(const std::string& fix) const {
  std::vector<std::string> others;
  for (size_t i = 0; i < names_.size(); ++i) {
    const bool is_read = options_.format == FileFormat::kJsonLines
                             ? std::ranges::find(keys_, names_[i]) != keys_.end()
                             : std::ranges::find(selected_, i) != selected_.end();
    // pandas writes its index as a column without a name.
    if (!is_read) {
      others.push_back(names_[i].empty() ? fmt::format("number {}, without a name", i + 1)
                                         : names_[i]);
    }
  }
  if (others.empty()) return "";
  return fmt::format("{}: {} not read: {}; to read others, {}", name(),
                     others.size() == 1 ? "a column is" : "some columns are", listed(others), fix);
}

bool RecordReader::is_empty_line(const std::string& line) const {
  // Between JSON texts white space says nothing. In other files it is the value of a column.
  if (options_.format == FileFormat::kJsonLines) return corpus::stripped(line).empty();
  return line.empty() || line == "\r";
}

bool RecordReader::next_line() {
  if (std::exchange(is_peeked_, false)) return true;
  if (!has_held_) {
    empty_lines_ = 0;
    if (!lines_.next(held_)) return false;
    while (is_empty_line(held_)) {
      ++empty_lines_;
      if (!lines_.next(held_)) return false;
    }
    has_held_ = true;
  }
  // As pandas and Python's csv do. With one column an empty line is an empty text.
  const bool is_split = names_.size() > 1 || fields_expected_ > 1 ||
                        (first_line_ == 0 && has_several_fields(held_, options_.format));
  const bool has_columns = is_split && !options_.fill_short;
  if (options_.format == FileFormat::kJsonLines || has_columns) empty_lines_ = 0;
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
  if (options_.skip_short || options_.fill_short) {
    const size_t most = *std::max_element(selected_.begin(), selected_.end());
    if (split_.size() <= most) {
      ++skipped_;
      if (!options_.fill_short) return false;
      split_.resize(most + 1);
    }
  } else {
    check_count();
  }
  fields.resize(selected_.size());
  for (size_t i = 0; i < selected_.size(); ++i) {
    fields[i].kind = Field::Kind::kText;
    // A column may be selected twice: a text may be its own pair.
    const auto later = selected_.begin() + static_cast<ptrdiff_t>(i) + 1;
    if (std::find(later, selected_.end(), selected_[i]) == selected_.end()) {
      fields[i].text.swap(split_[selected_[i]]);
    } else {
      fields[i].text = split_[selected_[i]];
    }
  }
  return true;
}

Json RecordReader::parsed_line() const {
  Json record = corpus::parse_data_json(line_, place());
  require(record.is_object(), "{}: is not a JSON object: every line must be one", place());
  return record;
}

bool RecordReader::is_unexpected(const std::string& key) const {
  return std::ranges::find(unexpected_, key) != unexpected_.end() ||
         (unexpected_rule_ != nullptr && unexpected_rule_(key) && !has_value(key));
}

void RecordReader::take_keys(std::vector<Field>& fields) const {
  const Json record = parsed_line();
  for (const auto& [key, value] : record.items()) {
    if (value.is_null() || !is_unexpected(key)) continue;
    throw corpus::MisreadFile(fmt::format(
        "{}: has the key `{}`, which the first record (line {}) lacks or has as null, so that it "
        "would not be read; give every record the same keys, or {}",
        place(), key, first_line_, unexpected_fix_));
  }
  fields.clear();
  for (const std::string& key : keys_) {
    const auto found = record.find(key);
    require(found != record.end(), "{}: has no key `{}`", place(), key);
    fields.push_back(field_of(*found, place(), key));
  }
}

// Returns false if the record is left out because it is too short.
bool RecordReader::take_record(std::vector<Field>& fields) {
  if (options_.format != FileFormat::kJsonLines) return take_columns(fields);
  take_keys(fields);
  return true;
}

bool RecordReader::next(std::vector<Field>& fields) {
  ONEBIT_INVARIANT(!selected_.empty() || !keys_.empty());
  for (;;) {
    const uint64_t before = lines_.number();
    uint64_t own_line = before;
    bool has_line = false;
    try {
      has_line = next_line();
      if (!has_line) return false;
      own_line = lines_.number();
      if (take_record(fields)) return true;
    } catch (const Error& error) {
      // A quoted field may have taken other records with it, and a line that is too long has no
      // end: only a single line that was read is left out.
      const uint64_t now = lines_.number();
      if (has_line ? now != own_line : now == before) throw;
      leave_out(error);
    }
  }
}

}  // namespace onebit::finetune
