// Reads words and tags from a file in columns, one word per line, with empty lines between
// sentences (Tjong Kim Sang and De Meulder 2003, and universaldependencies.org/format.html).
//
// - Columns are separated by tabs if the first word's line contains one, else by spaces.
// - Without names the words are in the first column and the tags in the last. A name is searched
//   in "# global.columns = ..." (CoNLL-U Plus), among the columns of CoNLL-U, or in the first line,
//   which is then a header. Of named columns, FORM has the words, and UPOS the tags if present.
// - Lines with -DOCSTART- end a sentence and do not belong to one. Lines that begin with # before a
//   sentence are comments in CoNLL-U (Plus), and elsewhere by the rule of comment_rule.h. In
//   CoNLL-U multiword tokens and empty nodes, whose ID is "3-4" or "3.1", are left out.
// - Rows with an empty word are left out and counted. Two in succession in the first of several
//   columns, which nobody chose, are an error: it is another column.
// - Where tabs separate columns that are given by number, rows may have columns after these, and
//   differ in them.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/apps/tag/comment_rule.h"
#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/text_lines.h"

namespace onebit::tag {

class ConllReader : public SentenceReader {
 public:
  struct Options {
    std::string tokens, tags;  // a column by name or by number from 1
    bool is_conllu = false;
    bool with_tags = true;
    Comments comments = Comments::kAuto;
    corpus::LeftOut left_out = corpus::LeftOut::kNothing;  // a bad row leaves out its sentence
    RememberedLayout remembered;
    std::string fix;  // ends errors about columns
  };

  // Error: unreadable.
  ConllReader(const Path& path, Options options);

  // Errors, with file:line: as for FileLines, a different number of columns than the first word
  // has, a missing column, an empty tag, a line that may be a comment or a word, a
  // sentence that only a column tells from the one before.
  bool next(Sentence& sentence) override;
  const std::string& name() const override { return lines_.name(); }
  std::vector<std::string> notes() const override;

 private:
  struct Line {
    std::string text;
    uint64_t number;
  };
  // Lines of one kind, for the notes.
  struct Seen {
    int64_t count = 0;
    uint64_t first_line = 0;
  };

  bool read_line();
  void look_ahead();
  void skip_sentence();
  std::string place() const;
  bool is_blank() const;
  bool take_line(Sentence& sentence);
  bool is_comment(bool in_sentence);
  bool is_comment_in_sentence() const;
  bool is_comment_by_rule() const;
  void see(Seen& seen) const;
  void refuse_numbers(const Sentence& sentence);
  void refuse_gaps();
  void refuse_sentence_column(const Sentence& sentence);
  void split();
  void learn_columns();
  void choose_columns();
  size_t column_of(const std::string& column, const char* role) const;
  bool is_header();
  // Whether a column that is only remembered exists in this file.
  bool has_column(const std::string& column) const;
  bool is_no_word() const;
  void check_count();

  Options options_;
  corpus::FileLines lines_;
  std::deque<Line> ahead_;  // read to find the form of words before comments are judged
  RowForm words_;           // of the first row, guessed before its columns are chosen
  std::vector<std::string> names_;
  std::string line_;
  uint64_t number_ = 0;                   // of line_
  std::vector<std::string_view> fields_;  // of line_
  bool has_comments_ = false, has_ids_ = false;
  bool has_columns_ = false;  // known after the first word
  bool has_tabs_ = false, may_differ_ = false, is_first_column_ = false;
  bool is_default_column_ = false, last_is_empty_ = false;  // of the words
  std::optional<size_t> sentence_column_;                   // says in which sentence a word is
  std::string sentence_value_;
  size_t columns_ = 0, token_column_ = 0, tag_column_ = 0;
  uint64_t columns_line_ = 0;
  Seen comments_, empty_words_, other_columns_;
  corpus::LeftOutRecords left_out_;
};

}  // namespace onebit::tag
