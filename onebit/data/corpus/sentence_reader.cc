#include "onebit/data/corpus/sentence_reader.h"

#include <string>

#include "onebit/data/corpus/json_text.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {
namespace {

// Text is not wrapped at this width, so a line of this length is a paragraph of its own.
constexpr size_t kParagraphLineBytes = 200;

}  // namespace

void SentenceReader::read(TextBlock& block, const Sink& sink) {
  switch (block.format) {
    case TextFormat::kJsonl:
      for_each_json_text(block, left_out_, [&](std::string_view document) {
        std::string text(document);
        read_prose(text, sink);
        sink.document_end();
      });
      break;
    case TextFormat::kProse:
      read_prose(block.text, sink);
      break;
    case TextFormat::kDocuments:
      read_prose(block.text, sink, true);
      break;
    case TextFormat::kLines:
      read_lines(block.text, sink);
      break;
    case TextFormat::kAuto:
      ONEBIT_INVARIANT(false);
  }
  if (block.ends_file) sink.document_end();
}

void SentenceReader::read_lines(std::string_view text, const Sink& sink) {
  for_each_line(text, [&](std::string_view whole) {
    const std::string_view line = stripped(whole);
    if (line.empty()) {
      sink.document_end();
    } else {
      sink.sentence(line);
    }
  });
}

void SentenceReader::read_prose(std::string& text, const Sink& sink, bool empty_lines_end) {
  size_t begin = 0;  // beginning of the paragraph
  size_t page = text.find('\f');
  for (size_t at = 0; at < text.size();) {
    if (page < at) page = text.find('\f', at);
    size_t end = text.find('\n', at);
    const bool page_ends = page < end;
    if (page_ends) end = page;
    if (end == std::string::npos) end = text.size();
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = std::min(end + 1, text.size());
    const bool is_empty = stripped(line).empty();
    if (!page_ends && line.size() <= kParagraphLineBytes && !is_empty) continue;
    read_paragraph(std::string_view(text).substr(begin, end - begin), sink);
    if (page_ends || (empty_lines_end && is_empty)) sink.document_end();
    begin = at;
  }
  read_paragraph(std::string_view(text).substr(begin), sink);
}

void SentenceReader::read_paragraph(std::string_view paragraph, const Sink& sink) {
  if (stripped(paragraph).empty()) return;
  for (const std::string_view sentence : splitter_.split(paragraph)) sink.sentence(sentence);
}

}  // namespace onebit::corpus
