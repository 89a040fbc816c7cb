#include "onebit/tag/conll_reader.h"

#include <algorithm>
#include <optional>

#include "onebit/base/counted.h"
#include "onebit/base/error.h"
#include "onebit/base/number.h"
#include "onebit/corpus/text_lines.h"

namespace onebit::tag {
namespace {

constexpr std::string_view kDocumentStart = "-DOCSTART-";
constexpr std::string_view kGlobalColumns = "# global.columns =";
constexpr size_t kMaxSentenceBytes = size_t{1} << 30;
const std::vector<std::string>& conllu_columns() {
  static const std::vector<std::string> names = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                                 "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
  return names;
}

std::vector<std::string_view> split_at_spaces(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = line.find_first_not_of(" \t"); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(" \t", end);
  }
  return fields;
}

std::vector<std::string_view> split_at_tabs(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    if (end == line.size()) return fields;
    begin = end + 1;
  }
}

bool is_name(const std::string& column) {
  return !column.empty() && !whole_number<size_t>(column);
}

std::string named_columns(const std::vector<std::string>& names) {
  return names.empty() ? "its columns have no names"
                       : fmt::format("it has {}", fmt::join(names, ", "));
}

}  // namespace

ConllReader::ConllReader(const Path& path, Options options)
    : options_(std::move(options)), lines_(path) {
  if (options_.is_conllu) names_ = conllu_columns();
  has_comments_ = has_ids_ = options_.is_conllu;
}

bool ConllReader::next(Sentence& sentence) {
  sentence = Sentence();
  while (lines_.next(line_)) {
    if (line_.ends_with('\r')) line_.pop_back();
    if (!take_line(sentence) && !sentence.words.empty()) return true;
  }
  return !sentence.words.empty();
}

// Returns false if the line ends a sentence.
bool ConllReader::take_line(Sentence& sentence) {
  if (corpus::stripped(line_).empty()) return false;
  if (is_comment(!sentence.words.empty())) return true;
  if (!has_columns_) has_tabs_ = line_.find('\t') != std::string::npos;
  split();
  if (fields_[0] == kDocumentStart) return false;
  if (!has_columns_) {
    if (is_header()) return true;
    learn_columns();
  }
  check_count();
  if (is_no_word()) return true;
  const std::string_view word = fields_[token_column_];
  require(!corpus::stripped(word).empty(), "{}: the word is empty", lines_.place());
  require(sentence.text.size() + word.size() < kMaxSentenceBytes,
          "{}: the sentence is longer than 1 GiB: are there no empty lines between sentences?",
          lines_.place());
  if (sentence.words.empty()) sentence.line = lines_.number();
  sentence.add_word(word);
  if (!options_.with_tags) return true;
  require(!fields_[tag_column_].empty(), "{}: the tag is empty", lines_.place());
  sentence.tags.emplace_back(fields_[tag_column_]);
  return true;
}

// Also reads the column names that a comment gives.
bool ConllReader::is_comment(bool in_sentence) {
  if (in_sentence || !line_.starts_with('#')) return false;
  if (!has_columns_ && line_.starts_with(kGlobalColumns)) {
    names_.clear();
    const std::string_view list = std::string_view(line_).substr(kGlobalColumns.size());
    for (const std::string_view name : split_at_spaces(list)) names_.emplace_back(name);
    has_comments_ = true;
    has_ids_ = !names_.empty() && names_[0] == "ID";
  }
  return has_comments_;
}

void ConllReader::split() {
  fields_ = has_tabs_ ? split_at_tabs(line_) : split_at_spaces(line_);
}

// The first line is a header if it contains a requested name that is given nowhere else.
bool ConllReader::is_header() {
  if (!names_.empty()) return false;
  const auto names_column = [&](const std::string& column) {
    return is_name(column) && std::find(fields_.begin(), fields_.end(), column) != fields_.end();
  };
  const bool needs_tokens = is_name(options_.tokens) && !options_.remembered.tokens;
  const bool needs_tags = options_.with_tags && is_name(options_.tags) && !options_.remembered.tags;
  const auto check = [&](const std::string& column) {
    require(
        names_column(column),
        "{}: there is no column \"{}\" in the first line, which should name the columns: it has "
        "{}; {}",
        lines_.place(), column, fmt::join(fields_, ", "), options_.fix);
  };
  if (needs_tokens) check(options_.tokens);
  if (needs_tags) check(options_.tags);
  if (!names_column(options_.tokens) && !names_column(options_.tags)) return false;
  names_.assign(fields_.begin(), fields_.end());
  return true;
}

bool ConllReader::has_column(const std::string& column) const {
  if (is_name(column)) return std::find(names_.begin(), names_.end(), column) != names_.end();
  const auto number = whole_number<size_t>(column);
  return names_.empty() && number && *number >= 1 && *number <= columns_;
}

size_t ConllReader::column_of(const std::string& column, const char* role) const {
  if (const auto number = whole_number<size_t>(column)) {
    require(*number >= 1 && *number <= columns_,
            "{}: there is no column {} for the {}: there are {}; {}", lines_.place(), column, role,
            columns_, options_.fix);
    return *number - 1;
  }
  const auto found = std::find(names_.begin(), names_.end(), column);
  require(found != names_.end(), "{}: there is no column \"{}\" for the {}: {}; {}", lines_.place(),
          column, role, named_columns(names_), options_.fix);
  require(std::find(found + 1, names_.end(), column) == names_.end(),
          "{}: two columns are called \"{}\"; give the number of the one for the {}",
          lines_.place(), column, role);
  return static_cast<size_t>(found - names_.begin());
}

void ConllReader::learn_columns() {
  const auto has_name = [&](const char* name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  };
  has_columns_ = true;
  columns_ = fields_.size();
  require(names_.empty() || names_.size() == columns_, "{}: has {} columns, and {} are named: {}{}",
          lines_.place(), columns_, names_.size(), fmt::join(names_, ", "),
          has_tabs_ ? "" : "; named columns are separated by tabs, as in CoNLL-U");
  if (options_.remembered.tokens && !has_column(options_.tokens)) options_.tokens.clear();
  if (options_.remembered.tags && !has_column(options_.tags)) options_.tags.clear();
  const std::string tokens = !options_.tokens.empty() ? options_.tokens
                             : has_name("FORM")       ? "FORM"
                                                      : "1";
  token_column_ = column_of(tokens, "words");
  if (!options_.with_tags) return;
  const std::string tags = !options_.tags.empty() ? options_.tags
                           : has_name("UPOS")     ? "UPOS"
                                                  : std::to_string(columns_);
  tag_column_ = column_of(tags, "tags");
  require(token_column_ != tag_column_, "{}: column {} would contain both words and tags{}; {}",
          lines_.place(), token_column_ + 1, columns_ == 1 ? ", and there is no other" : "",
          options_.fix);
}

void ConllReader::check_count() const {
  require(fields_.size() == columns_, "{}: has {}, the first word's line has {}{}", lines_.place(),
          counted(static_cast<int64_t>(fields_.size()), "column"), columns_,
          has_comments_            ? ""
          : line_.starts_with('#') ? ": a comment? The format conllu supports them"
          : has_tabs_              ? ""
                                   : ": a space inside a word? Put tabs between the columns");
}

bool ConllReader::is_no_word() const {
  return has_ids_ && fields_[0].find_first_of("-.") != std::string_view::npos;
}

}  // namespace onebit::tag
