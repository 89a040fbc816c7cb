#include "onebit/apps/tag/conll_reader.h"

#include <algorithm>
#include <optional>

#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

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

std::optional<size_t> number_of_column(const std::string& column) {
  return has_leading_zeros(column) ? std::nullopt : whole_number<size_t>(column);
}

bool is_name(const std::string& column) {
  return !column.empty() && !number_of_column(column);
}

std::string named_columns(const std::vector<std::string>& names) {
  return names.empty() ? "its columns have no names"
                       : fmt::format("it has {}", fmt::join(names, ", "));
}

}  // namespace

ConllReader::ConllReader(const Path& path, Options options)
    : options_(std::move(options)), lines_(path), left_out_(options_.left_out) {
  if (options_.is_conllu) names_ = conllu_columns();
  has_comments_ = has_ids_ = options_.is_conllu;
}

std::string ConllReader::place() const {
  return fmt::format("{}:{}", name(), number_);
}

bool ConllReader::is_blank() const {
  return corpus::stripped(line_).empty();
}

void ConllReader::see(Seen& seen) const {
  if (seen.count++ == 0) seen.first_line = number_;
}

// Overwrites line_, and returns false after the last.
bool ConllReader::read_line() {
  if (!ahead_.empty()) {
    line_.swap(ahead_.front().text);
    number_ = ahead_.front().number;
    ahead_.pop_front();
    return true;
  }
  if (!lines_.next(line_)) return false;
  if (line_.ends_with('\r')) line_.pop_back();
  number_ = lines_.number();
  if (!has_columns_ && words_.columns == 0 && line_.starts_with('#')) look_ahead();
  return true;
}

// Finds the form of the rows of words: in the first line that is neither empty nor begins with #,
// or, without one, in line_ itself.
void ConllReader::look_ahead() {
  const auto take_form = [this](const std::string& row) {
    const bool has_tabs = row.find('\t') != std::string::npos;
    const std::vector<std::string_view> fields = split_row(row, has_tabs);
    const auto column = [&](const std::string& given, size_t otherwise) {
      const auto number = number_of_column(given);
      const auto named = std::find(fields.begin(), fields.end(), given);
      return number                  ? std::max<size_t>(*number, 1) - 1
             : named != fields.end() ? static_cast<size_t>(named - fields.begin())
                                     : otherwise;
    };
    words_ = row_form(fields, has_tabs, column(options_.tokens, 0),
                      column(options_.tags, fields.size() - 1));
  };
  std::string line;
  while (lines_.next(line)) {
    if (line.ends_with('\r')) line.pop_back();
    ahead_.push_back({line, lines_.number()});
    const bool is_row = !corpus::stripped(line).empty() && !line.starts_with('#') &&
                        !line.starts_with(kDocumentStart);
    if (is_row) return take_form(line);
  }
  take_form(line_);
}

bool ConllReader::next(Sentence& sentence) {
  sentence = Sentence();
  while (read_line()) {
    if (!is_blank() && is_comment(!sentence.words.empty())) {
      see(comments_);
      continue;
    }
    try {
      if (!take_line(sentence) && !sentence.words.empty()) break;
    } catch (const Error& error) {
      if (!has_columns_) throw;
      left_out_.add(error);
      skip_sentence();
      sentence = Sentence();
    }
  }
  if (is_first_column_) refuse_numbers(sentence);
  return !sentence.words.empty();
}

void ConllReader::skip_sentence() {
  while (!is_blank() && read_line()) {
  }
}

// Files of several columns often begin with the number of the word, from 0, from 1 or through the
// file, and words 1, 2, 3 would train without a sign of the mistake.
void ConllReader::refuse_numbers(const Sentence& sentence) {
  constexpr size_t kNoChance = 3;  // words, each of which is the next number
  if (sentence.words.size() < kNoChance) return;
  is_first_column_ = false;
  const std::optional<uint32_t> first = whole_number<uint32_t>(sentence.word(0));
  if (!first) return;
  const uint64_t number = *first;
  for (size_t i = 0; i < sentence.words.size(); ++i) {
    if (sentence.word(i) != std::to_string(number + i)) return;
  }
  fail(
      "{}:{}: its first column counts the words ({}, {}, {}), so that it is not that of the words; "
      "{}",
      name(), sentence.line, number, number + 1, number + 2, options_.fix);
}

// Spreadsheets name the sentence in the first column of its first row, and leave it empty in the
// others: the file would be read as a few words.
void ConllReader::refuse_gaps() {
  if (is_default_column_ && last_is_empty_) {
    throw corpus::MisreadFile(fmt::format(
        "{}: the first column is empty, as in the row before, so that it is not that of the words; "
        "{}, and write an empty line after each sentence",
        place(), options_.fix));
  }
  last_is_empty_ = true;
}

// A column that numbers the sentences ends none.
void ConllReader::refuse_sentence_column(const Sentence& sentence) {
  if (!sentence_column_ || fields_.size() <= *sentence_column_) return;
  const std::string_view value = corpus::stripped(fields_[*sentence_column_]);
  if (sentence.words.empty()) {
    sentence_value_ = value;
  } else if (!value.empty() && value != sentence_value_) {
    throw corpus::MisreadFile(
        fmt::format("{}: a sentence begins according to the column \"{}\", which is not read: "
                    "sentences are separated by empty lines; write one before each",
                    place(), names_[*sentence_column_]));
  }
}

// Returns false if the line ends a sentence.
bool ConllReader::take_line(Sentence& sentence) {
  if (is_blank()) return false;
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
  if (word == kDocumentStart) return false;
  if (corpus::stripped(word).empty()) {
    refuse_gaps();
    see(empty_words_);
    return true;
  }
  last_is_empty_ = false;
  refuse_sentence_column(sentence);
  require(sentence.text.size() + word.size() < kMaxSentenceBytes,
          "{}: the sentence is longer than 1 GiB: are there no empty lines between sentences?",
          place());
  if (sentence.words.empty()) sentence.line = number_;
  if (options_.with_tags) {
    require(!fields_[tag_column_].empty(), "{}: the tag is empty", place());
    sentence.tags.emplace_back(fields_[tag_column_]);
  }
  sentence.add_word(word);
  return true;
}

// Also reads the column names that a comment gives.
bool ConllReader::is_comment(bool in_sentence) {
  if (!line_.starts_with('#')) return false;
  if (in_sentence) return is_comment_in_sentence();
  if (!has_columns_ && line_.starts_with(kGlobalColumns)) {
    names_.clear();
    const std::string_view list = std::string_view(line_).substr(kGlobalColumns.size());
    for (const std::string_view name : split_row(list, false)) names_.emplace_back(name);
    has_comments_ = true;
    has_ids_ = !names_.empty() && names_[0] == "ID";
  }
  return has_comments_ ? options_.comments != Comments::kNo : is_comment_by_rule();
}

// Inside a sentence only the option makes sure that what can be no row is no mistake.
bool ConllReader::is_comment_in_sentence() const {
  const bool yes = options_.comments == Comments::kYes;
  if (split_row(line_, has_tabs_).size() != columns_) return yes;
  // Another column may have # inside a sentence, for example the part of speech.
  if (token_column_ != 0 || options_.comments == Comments::kNo ||
      judge_hash_line(line_, words_, Comments::kAuto) != HashLine::kComment) {
    return false;
  }
  require(yes,
          "{}: may be a comment inside a sentence, or the word \"{}\" with the tag \"{}\"; give "
          "--comments yes or no (data.comments)",
          place(), split_row(line_, has_tabs_).front(), split_row(line_, has_tabs_).back());
  return true;
}

bool ConllReader::is_comment_by_rule() const {
  const HashLine found = judge_hash_line(line_, words_, options_.comments);
  require(
      found != HashLine::kUnclear,
      "{}: may be a comment, or the word \"{}\" with the tag \"{}\": it begins with # and has as "
      "many columns as a row of a word; give --comments yes or no (data.comments)",
      place(), split_row(line_, words_.has_tabs).front(), split_row(line_, words_.has_tabs).back());
  return found == HashLine::kComment;
}

void ConllReader::split() {
  fields_ = split_row(line_, has_tabs_);
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
        place(), column, fmt::join(fields_, ", "), options_.fix);
  };
  if (needs_tokens) check(options_.tokens);
  if (needs_tags) check(options_.tags);
  if (!names_column(options_.tokens) && !names_column(options_.tags)) return false;
  names_.assign(fields_.begin(), fields_.end());
  const auto sentences = std::find_if(names_.begin(), names_.end(), [](const std::string& column) {
    return column.starts_with("Sentence") || column.starts_with("sentence");
  });
  if (sentences != names_.end() && *sentences != options_.tokens) {
    sentence_column_ = static_cast<size_t>(sentences - names_.begin());
  }
  return true;
}

bool ConllReader::has_column(const std::string& column) const {
  if (is_name(column)) return std::find(names_.begin(), names_.end(), column) != names_.end();
  const auto number = number_of_column(column);
  return names_.empty() && number && *number >= 1 && *number <= columns_;
}

size_t ConllReader::column_of(const std::string& column, const char* role) const {
  if (const auto number = number_of_column(column)) {
    require(*number >= 1 && *number <= columns_,
            "{}: there is no column {} for the {}: there are {}; {}", place(), column, role,
            columns_, options_.fix);
    return *number - 1;
  }
  const auto found = std::find(names_.begin(), names_.end(), column);
  require(found != names_.end(), "{}: there is no column \"{}\" for the {}: {}; {}", place(),
          column, role, named_columns(names_), options_.fix);
  require(std::find(found + 1, names_.end(), column) == names_.end(),
          "{}: two columns are called \"{}\"; give the number of the one for the {}", place(),
          column, role);
  return static_cast<size_t>(found - names_.begin());
}

void ConllReader::learn_columns() {
  choose_columns();
  words_ =
      row_form(fields_, has_tabs_, token_column_, options_.with_tags ? tag_column_ : columns_ - 1);
  has_columns_ = true;
}

void ConllReader::choose_columns() {
  const auto has_name = [&](const char* name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  };
  columns_ = fields_.size();
  columns_line_ = number_;
  require(names_.empty() || names_.size() == columns_, "{}: has {} columns, and {} are named: {}{}",
          place(), columns_, names_.size(), fmt::join(names_, ", "),
          has_tabs_ ? "" : "; named columns are separated by tabs, as in CoNLL-U");
  if (options_.remembered.tokens && !has_column(options_.tokens)) options_.tokens.clear();
  if (options_.remembered.tags && !has_column(options_.tags)) options_.tags.clear();
  const std::string tokens = !options_.tokens.empty() ? options_.tokens
                             : has_name("FORM")       ? "FORM"
                                                      : "1";
  is_first_column_ = options_.tokens.empty() && names_.empty() && columns_ > 2;
  is_default_column_ = is_first_column_;
  token_column_ = column_of(tokens, "words");
  const auto is_number = [](const std::string& column) { return number_of_column(column); };
  may_differ_ =
      has_tabs_ && is_number(options_.tokens) && (!options_.with_tags || is_number(options_.tags));
  if (!options_.with_tags) return;
  const std::string tags = !options_.tags.empty() ? options_.tags
                           : has_name("UPOS")     ? "UPOS"
                                                  : std::to_string(columns_);
  tag_column_ = column_of(tags, "tags");
  require(token_column_ != tag_column_, "{}: column {} would contain both words and tags{}; {}",
          place(), token_column_ + 1, columns_ == 1 ? ", and there is no other" : "", options_.fix);
}

void ConllReader::check_count() {
  if (fields_.size() == columns_) return;
  const size_t needed = std::max(token_column_, options_.with_tags ? tag_column_ : 0) + 1;
  if (may_differ_ && fields_.size() >= needed) return see(other_columns_);
  const char* advice =
      has_comments_ ? ""
      : line_.starts_with('#')
          ? ": a comment inside a sentence? --comments yes (data.comments) leaves it out"
      : has_tabs_ ? ": to read rows of several lengths, give the columns by number"
                  : ": a space inside a word? Put tabs between the columns";
  fail("{}: has {}, the first row of a word (line {}) has {}{}", place(),
       counted(static_cast<int64_t>(fields_.size()), "column"), columns_line_, columns_, advice);
}

std::vector<std::string> ConllReader::notes() const {
  std::vector<std::string> notes;
  if (!options_.with_tags && is_default_column_) {
    notes.push_back(fmt::format(
        "words are the first of {} columns, and no other is read (--tokens, data.tokens)",
        columns_));
  }
  const auto add = [&](const Seen& seen, const char* one, const char* several) {
    if (seen.count == 0) return;
    notes.push_back(seen.count == 1 ? fmt::format("line {} {}", seen.first_line, one)
                                    : fmt::format("{} lines {}; first: line {}", seen.count,
                                                  several, seen.first_line));
  };
  // Comments are part of CoNLL-U.
  if (!has_comments_) {
    add(comments_, "begins with # and was left out as a comment (--comments, data.comments)",
        "begin with # and were left out as comments (--comments, data.comments)");
  }
  add(empty_words_, "has an empty word and was left out", "have an empty word and were left out");
  add(other_columns_, "has more or fewer columns than the first word",
      "have more or fewer columns than the first word");
  const std::string left_out = left_out_.summary();
  if (!left_out.empty()) notes.push_back(left_out + "; a record is a sentence");
  return notes;
}

bool ConllReader::is_no_word() const {
  return has_ids_ && fields_[0].find_first_of("-.") != std::string_view::npos;
}

}  // namespace onebit::tag
