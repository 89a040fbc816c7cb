// Reads words and tags from JSON lines, one object per line, in one of two forms:
//
//   {"tokens": ["In", "Rome"], "tags": ["O", "B-LOC"]}
//   {"text": "In Rome", "entities": [{"start": 3, "end": 7, "label": "LOC"}]}
//
// Positions count characters (Unicode code points) from 0, the end exclusive. An entity may also be
// a list [start, end, label]. A text is split into words at white space and punctuation, as BERT's
// basic tokenizer does.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/data/text/basic_tokenizer.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::tag {

// Sets the words of sentence.text, which end at white space and punctuation, and at added tokens
// (null: none). `splitter` is cased.
void split_text(const text::BasicTokenizer& splitter, const text::AddedTokenFinder* added_tokens,
                Sentence& sentence);

class JsonReader : public SentenceReader {
 public:
  struct Options {
    std::string tokens, tags;  // keys. Empty: "tokens" or "words", and "tags", "ner_tags" or
                               // "labels"
    std::string text = "text", entities = "entities";
    Scheme scheme = Scheme::kIob2;  // of the tags derived from entities. kPlain: IOB2
    bool with_tags = true;
    std::vector<std::string> tag_names;  // FileLayout::tag_names
    corpus::LeftOut left_out = corpus::LeftOut::kNothing;
    // Tokens that are words of their own in a text. Null: none.
    std::shared_ptr<const text::AddedTokenFinder> added_tokens = {};
    RememberedLayout remembered;
    std::string fix;  // ends errors about keys
  };

  // Error: unreadable.
  JsonReader(const Path& path, Options options);

  // The form is the first line's. A later line with a key that would have changed it is an error.
  // Errors, with file:line: as for FileLines, not an object, a missing key, not as many tags as
  // words, a position outside the text, entities that overlap or share a word.
  bool next(Sentence& sentence) override;
  const std::string& name() const override { return lines_.name(); }
  int64_t widened() const override { return widened_; }
  std::vector<std::string> notes() const override;

 private:
  struct Span {
    int64_t begin, end;  // bytes of the text
    std::string label;
  };

  void take(const Json& object, Sentence& sentence);
  std::string only_one_of(const Json& object, std::initializer_list<const char*> names);
  void choose_form(const Json& object);
  void refuse_unexpected(const Json& object) const;
  void name_tag(const Json& number, std::string& tag);
  const Json& value_of(const Json& object, const std::string& key) const;
  std::vector<std::string> list_of(const Json& object, const std::string& key, bool are_tags);
  void take_words(const Json& object, Sentence& sentence);
  void take_text(const Json& object, Sentence& sentence);
  std::vector<Span> spans_of(const Json& object, const std::string& text) const;
  Span span_of(const Json& one, const std::vector<uint32_t>& places) const;
  Entity words_of(const Span& span, const Sentence& sentence);

  Options options_;
  corpus::FileLines lines_;
  text::BasicTokenizer splitter_;
  bool has_form_ = false, has_words_ = false;
  std::vector<std::string> unexpected_;  // usual keys that the first line did not have
  uint64_t form_line_ = 0;
  int64_t widened_ = 0, named_ = 0;
  corpus::LeftOutRecords left_out_;
};

}  // namespace onebit::tag
