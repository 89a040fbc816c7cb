// Extracts sentences and documents from a block of text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/text/sentence_splitter.h"

namespace onebit::corpus {

// The texts in a block of JSON lines.

// Calls body(document) for the "text" of every JSON line of the block. Errors, with path and line,
// or records that are counted in `left_out`: not JSON (data_json.h), not an object, no "text", one
// that is not a string.
void for_each_json_text(const TextBlock& block, LeftOutRecords& left_out,
                        const std::function<void(std::string_view)>& body);

// Not thread-safe, because of its sentence splitter: each thread needs its own.
class SentenceReader {
 public:
  explicit SentenceReader(const std::string& locale, LeftOut rule = LeftOut::kMissing)
      : splitter_(locale), rule_(rule), left_out_(rule) {}

  struct Sink {
    std::function<void(std::string_view)> sentence;  // without surrounding white space, not empty
    std::function<void()> document_end;              // may be called several times in a row
  };
  // A document may continue in the next block. Modifies block.text.
  void read(TextBlock& block, const Sink& sink);
  // Records of JSON lines that were not read.
  LeftOutRecords take_left_out() { return std::exchange(left_out_, LeftOutRecords(rule_)); }

 private:
  void read_lines(std::string_view text, const Sink& sink);
  void read_prose(std::string& text, const Sink& sink, bool empty_lines_end = false);
  void read_paragraph(std::string_view paragraph, const Sink& sink);

  text::SentenceSplitter splitter_;
  LeftOut rule_;
  LeftOutRecords left_out_;
};

}  // namespace onebit::corpus
