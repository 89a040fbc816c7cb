// Comments in files of columns: lines that begin with # before a sentence. Only CoNLL-U defines
// them. Other published files have them too, and in others # is a word.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace onebit::tag {

enum class Comments { kAuto, kYes, kNo };

// What is known of the rows of words.
struct RowForm {
  bool has_tabs = false;  // columns are separated by tabs, else by spaces and tabs
  size_t columns = 0;
  size_t token_column = 0;
  size_t tag_column = 0;      // not read if it is token_column
  bool has_entities = false;  // the tag of the first row is one of entities
};

std::vector<std::string_view> split_row(std::string_view line, bool has_tabs);

// The form of the first row of a word, which is `fields`. The columns may be beyond its end.
RowForm row_form(const std::vector<std::string_view>& fields, bool has_tabs, size_t token_column,
                 size_t tag_column);

enum class HashLine { kComment, kWord, kUnclear };

// What a line is that begins with # before a sentence. With kAuto it is a comment if it cannot be a
// row of words: "# key = value", "#begin document", another number or separator of columns, # in a
// column that has no words, or, among tags of entities, a last column that is no tag ("domain=en").
// It is a word if it has a tag of entities, or if # is part of a word.
HashLine judge_hash_line(std::string_view line, const RowForm& words, Comments rule);

}  // namespace onebit::tag
