// Passages of documents: what a search finds. A passage has at most a given number of tokens, so
// that its vector stands for all of its text.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/corpus/input_files.h"
#include "onebit/data/corpus/sentence_reader.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/text/sentence_splitter.h"
#include "onebit/data/text/tokenizer.h"

namespace onebit::search {

struct Passage {
  std::string file;   // as it was found
  uint64_t line = 0;  // in the file, of its first character. Of JSON lines, the record's
  std::string text;
};

struct PassageOptions {
  int64_t tokens = 128;  // at most, without special tokens
  std::string locale = "en";
  corpus::LeftOut left_out = corpus::LeftOut::kMissing;
};

// Reads the files ahead of a PassageReader, except for pipes and standard input, which can be read
// only once. Errors: as for PassageReader::next().
void check_inputs(const std::vector<corpus::InputFile>& files, corpus::TextFormat format,
                  corpus::LeftOut left_out);

// Reads files of any size. Paragraphs end at empty lines. Short ones of a document are joined while
// they fit, longer ones are cut between sentences, and a longer sentence is cut between words.
class PassageReader {
 public:
  // Errors: as for corpus::TextSource, and an unknown locale.
  PassageReader(corpus::TextSource source, text::Tokenizer tokenizer,
                const PassageOptions& options);

  // Overwrites `passage`, and returns false after the last. Errors: as for corpus::TextSource, and
  // text that is not UTF-8.
  bool next(Passage& passage);
  const corpus::TextSource& source() const { return source_; }
  // Records of JSON lines that were not read.
  const corpus::LeftOutRecords& left_out() const { return left_out_; }
  // Records of JSON lines whose text is blank.
  int64_t blank_records() const { return blank_records_; }

  struct Place {
    uint64_t line;
    bool is_record = false;  // all of a text that stands in one line of JSON
  };

 private:
  void read(const corpus::TextBlock& block);
  void read_json_lines(const corpus::TextBlock& block);
  void read_document(std::string_view text, Place place);
  void add_paragraph(std::string_view paragraph, Place place);
  void add_sentence(std::string_view sentence, int64_t tokens, Place place,
                    std::string_view between);
  void cut_sentence(std::string_view sentence, Place place);
  void end_passage();

  corpus::TextSource source_;
  text::Tokenizer tokenizer_;
  text::SentenceSplitter splitter_;
  PassageOptions options_;
  corpus::LeftOutRecords left_out_;
  int64_t blank_records_ = 0;
  std::vector<text::Piece> pieces_;
  Passage passage_;  // grows
  int64_t passage_tokens_ = 0;
  std::deque<Passage> ready_;
};

}  // namespace onebit::search
