// Reads words and tags from a file in columns, one word per line, with empty lines between
// sentences (Tjong Kim Sang and De Meulder 2003; universaldependencies.org/format.html).
//
// - Columns are separated by tabs if the first word's line contains one, else by spaces.
// - Without names the words are in the first column and the tags in the last. A name is searched
//   in "# global.columns = ..." (CoNLL-U Plus), among the columns of CoNLL-U, or in the first line,
//   which is then a header. Of named columns, FORM has the words, and UPOS the tags if present.
// - Lines with -DOCSTART- end a sentence and do not belong to one. In CoNLL-U (Plus), lines that
//   begin with # before a sentence are comments, and multiword tokens and empty nodes, whose ID is
//   "3-4" or "3.1", are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/corpus/file_lines.h"
#include "onebit/tag/sentence_reader.h"

namespace onebit::tag {

class ConllReader : public SentenceReader {
 public:
  struct Options {
    std::string tokens, tags;  // a column by name or by number from 1
    bool is_conllu = false;
    bool with_tags = true;
    RememberedLayout remembered;
    std::string fix;  // ends errors about columns
  };

  // Error: unreadable.
  ConllReader(const Path& path, Options options);

  // Errors, with file:line: those of FileLines; a different number of columns than the first word
  // has; a missing column; an empty word or tag.
  bool next(Sentence& sentence) override;
  const std::string& name() const override { return lines_.name(); }

 private:
  bool take_line(Sentence& sentence);
  bool is_comment(bool in_sentence);
  void split();
  void learn_columns();
  size_t column_of(const std::string& column, const char* role) const;
  bool is_header();
  // Whether a column that is only remembered exists in this file.
  bool has_column(const std::string& column) const;
  bool is_no_word() const;
  void check_count() const;

  Options options_;
  corpus::FileLines lines_;
  std::vector<std::string> names_;
  std::string line_;
  std::vector<std::string_view> fields_;  // of line_
  bool has_comments_ = false, has_ids_ = false;
  bool has_columns_ = false, has_tabs_ = false;  // known after the first word
  size_t columns_ = 0, token_column_ = 0, tag_column_ = 0;
};

}  // namespace onebit::tag
