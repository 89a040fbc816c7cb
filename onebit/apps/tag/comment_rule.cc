#include "onebit/apps/tag/comment_rule.h"

#include <algorithm>
#include <cctype>

#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/number.h"

namespace onebit::tag {
namespace {

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

// "# sent_id = 1", "# text = ...", as in CoNLL-U. The key is one word.
bool is_key_and_value(std::string_view line) {
  const size_t equals = line.find(" = ");
  const size_t end = line.ends_with(" =") ? line.size() - 2 : equals;
  if (end == std::string_view::npos) return false;
  const std::string_view key = corpus::stripped(line.substr(1, end - 1));
  return !key.empty() && key.find_first_of(" \t=#") == std::string_view::npos;
}

// Names of entities and parts of speech have letters, hyphens and underscores. Those without a
// prefix are tags as well. Other languages' letters are not ASCII.
bool may_be_tag(std::string_view field) {
  return std::all_of(field.begin(), field.end(), [](unsigned char one) {
    return std::isalpha(one) != 0 || one == '-' || one == '_' || one >= 0x80;
  });
}

// O, B-LOC, or a prefix alone, of any scheme.
bool is_entity_tag(std::string_view tag) {
  constexpr std::string_view kPrefixes = "OBIESLUMW";
  const bool has_prefix = !tag.empty() && kPrefixes.find(tag[0]) != std::string_view::npos;
  return has_prefix && (tag.size() == 1 || (tag.size() > 2 && tag[1] == '-'));
}

bool has_entity_tag(const std::vector<std::string_view>& fields, size_t token_column,
                    size_t tag_column) {
  return tag_column != token_column && tag_column < fields.size() &&
         is_entity_tag(fields[tag_column]);
}

}  // namespace

std::vector<std::string_view> split_row(std::string_view line, bool has_tabs) {
  return has_tabs ? split_at_tabs(line) : split_at_spaces(line);
}

RowForm row_form(const std::vector<std::string_view>& fields, bool has_tabs, size_t token_column,
                 size_t tag_column) {
  return {.has_tabs = has_tabs,
          .columns = fields.size(),
          .token_column = token_column,
          .tag_column = tag_column,
          .has_entities = has_entity_tag(fields, token_column, tag_column)};
}

HashLine judge_hash_line(std::string_view line, const RowForm& words, Comments rule) {
  if (rule != Comments::kAuto) {
    return rule == Comments::kYes ? HashLine::kComment : HashLine::kWord;
  }
  if (line.starts_with("#begin document") || line.starts_with("#end document") ||
      is_key_and_value(line)) {
    return HashLine::kComment;
  }
  const bool has_other_separator = !words.has_tabs && line.find('\t') != std::string_view::npos;
  const std::vector<std::string_view> fields = split_row(line, words.has_tabs);
  if (has_other_separator || fields.size() != words.columns) return HashLine::kComment;
  const bool has_tag = has_entity_tag(fields, words.token_column, words.tag_column);
  if (words.token_column != 0) return has_tag ? HashLine::kWord : HashLine::kComment;
  if (fields.size() == 1 || has_tag || is_entity_tag(fields.back())) return HashLine::kWord;
  if (fields[0] == "#") {
    if (words.has_entities && !may_be_tag(fields.back())) return HashLine::kComment;
    return words.has_tabs ? HashLine::kWord : HashLine::kUnclear;
  }
  return whole_number<int64_t>(fields.back()) ? HashLine::kUnclear : HashLine::kWord;
}

}  // namespace onebit::tag
