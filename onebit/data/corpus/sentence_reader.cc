#include "onebit/data/corpus/sentence_reader.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

#include "onebit/data/corpus/data_json.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {

namespace {

// The reason in a message of the library: "[json.exception...] parse error at line 1, ...: ...".
std::string reason_of(std::string message) {
  message.erase(0, message.find("] ") + 2);
  if (message.starts_with("parse error at ")) message.erase(0, message.find(": ") + 2);
  return message;
}

// Keeps only the "text" at the top level.
class TextHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TextHandler(std::string place) : place_(std::move(place)) {}

  bool found() const { return found_; }
  std::string take_text() { return std::move(text_); }

  bool null() override {
    if (wanted_)
      throw MissingValue(fmt::format("{}: \"text\" is null or not a number (NaN)", place_));
    return other();
  }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    wanted_ = depth_ == 1 && key == "text";
    require(!wanted_ || !found_, "{}: \"text\" is given twice", place_);
    return true;
  }
  bool string(string_t& value) override {
    require(depth_ > 0, "{}: is not a JSON object", place_);
    if (wanted_) {
      text_.swap(value);
      found_ = true;
      wanted_ = false;
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail("{}: column {}: invalid JSON: {}", place_, position, reason_of(error.what()));
  }

 private:
  bool other() {
    require(depth_ > 0, "{}: is not a JSON object", place_);
    require(!wanted_, "{}: \"text\" is not a string", place_);
    return true;
  }
  bool open(bool object) {
    require(depth_ > 0 || object, "{}: is not a JSON object", place_);
    require(!wanted_, "{}: \"text\" is not a string", place_);
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string place_, text_;
  int64_t depth_ = 0;
  bool wanted_ = false, found_ = false;
};

std::string strict_text_of(std::string_view line, const std::string& place) {
  TextHandler handler(place);
  nlohmann::json::sax_parse(line.begin(), line.end(), &handler);
  require(handler.found(), "{}: has no \"text\"", place);
  return handler.take_text();
}

// Nearly all lines need no repair, so it is tried only after an error.
std::string text_of(std::string_view line, const std::string& place) {
  try {
    return strict_text_of(line, place);
  } catch (const MissingValue&) {
    throw;
  } catch (const Error&) {
    const std::string repaired = repaired_json(line);
    if (repaired == line) throw;
    return strict_text_of(repaired, place);
  }
}

}  // namespace

void for_each_json_text(const TextBlock& block, LeftOutRecords& left_out,
                        const std::function<void(std::string_view)>& body) {
  uint64_t number = block.first_line;
  for_each_line(block.text, [&](std::string_view line) {
    const std::string place = fmt::format("{}:{}", block.source, number++);
    if (stripped(line).empty()) return;
    std::string text;
    try {
      text = text_of(line, place);
    } catch (const Error& error) {
      left_out.add(error);
      return;
    }
    body(text);
  });
}

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
