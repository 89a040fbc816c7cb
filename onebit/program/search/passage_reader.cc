#include "onebit/program/search/passage_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace onebit::search {
namespace {

constexpr std::string_view kWhite = " \t\r\n\f\v";

// The part without surrounding white space.
std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin);
}

// Where `part` begins, which is a part of `whole`.
PassageReader::Place place_in(std::string_view whole, std::string_view part,
                              PassageReader::Place place) {
  const std::string_view before = whole.substr(0, static_cast<size_t>(part.data() - whole.data()));
  if (!place.is_record) {
    place.line += static_cast<uint64_t>(std::count(before.begin(), before.end(), '\n'));
  }
  return place;
}

// Appends `text` with the line ends of Unix.
void append_lines(std::string_view text, std::string& to) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) != "\r\n") to += text[i];
  }
}

// Takes a paragraph off the beginning of `text`: all before an empty line or a form feed.
std::string_view take_paragraph(std::string_view& text) {
  size_t end = 0;
  bool is_ended = false;
  while (end < text.size() && !is_ended) {
    const size_t line_end = std::min(text.find('\n', end), text.size());
    const std::string_view line = text.substr(end, line_end - end);
    is_ended = trimmed(line).empty();
    if (const size_t feed = line.find('\f'); feed != std::string_view::npos) {
      end += feed + 1;
      break;
    }
    end = std::min(line_end + 1, text.size());
  }
  return std::exchange(text, text.substr(end)).substr(0, end);
}

}  // namespace

void check_inputs(const std::vector<corpus::InputFile>& files, corpus::TextFormat format,
                  corpus::LeftOut left_out) {
  std::vector<corpus::InputFile> readable;
  std::copy_if(files.begin(), files.end(), std::back_inserter(readable),
               [](const corpus::InputFile& file) { return !corpus::is_stream(file); });
  corpus::TextSource source(std::move(readable), format);
  corpus::LeftOutRecords left(left_out);
  for (corpus::TextBlock block; source.read(block);) {
    corpus::check_utf8(block);
    if (block.format != corpus::TextFormat::kJsonl) continue;
    corpus::for_each_json_text(block, left, [](std::string_view) {});
  }
}

PassageReader::PassageReader(corpus::TextSource source, text::Tokenizer tokenizer,
                             const PassageOptions& options)
    : source_(std::move(source)),
      tokenizer_(std::move(tokenizer)),
      splitter_(options.locale),
      options_(options),
      left_out_(options.left_out) {}

bool PassageReader::next(Passage& passage) {
  corpus::TextBlock block;
  while (ready_.empty() && source_.read(block)) {
    corpus::check_utf8(block);
    read(block);
  }
  if (ready_.empty()) return false;
  passage = std::move(ready_.front());
  ready_.pop_front();
  return true;
}

void PassageReader::read(const corpus::TextBlock& block) {
  passage_.file = block.source;
  if (block.format == corpus::TextFormat::kJsonl) {
    read_json_lines(block);
  } else {
    read_document(block.text, {.line = block.first_line});
  }
  if (block.ends_file) end_passage();
}

void PassageReader::read_json_lines(const corpus::TextBlock& block) {
  corpus::TextBlock record = block;
  std::string_view rest = block.text;
  for (uint64_t line = block.first_line; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    record.text = rest.substr(0, end);
    record.first_line = line;
    corpus::for_each_json_text(record, left_out_, [&](std::string_view document) {
      if (trimmed(document).empty()) ++blank_records_;
      read_document(document, {.line = line, .is_record = true});
      end_passage();
    });
    rest.remove_prefix(end);
  }
}

void PassageReader::read_document(std::string_view text, Place place) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view whole = take_paragraph(rest);
    const std::string_view paragraph = trimmed(whole);
    if (!paragraph.empty()) add_paragraph(paragraph, place_in(text, paragraph, place));
    if (whole.ends_with('\f')) end_passage();
  }
}

void PassageReader::add_paragraph(std::string_view paragraph, Place place) {
  pieces_.clear();
  tokenizer_.encode_with_offsets(paragraph, pieces_);
  const auto tokens = static_cast<int64_t>(pieces_.size());
  if (tokens <= options_.tokens) return add_sentence(paragraph, tokens, place, "\n");
  end_passage();
  auto piece = pieces_.begin();
  for (const std::string_view sentence : splitter_.split(paragraph)) {
    const auto end = static_cast<size_t>(sentence.data() - paragraph.data()) + sentence.size();
    const auto first = piece;
    while (piece != pieces_.end() && piece->begin < end) ++piece;
    const Place at = place_in(paragraph, sentence, place);
    if (piece - first <= options_.tokens) {
      add_sentence(sentence, piece - first, at, " ");
    } else {
      cut_sentence(sentence, at);
    }
  }
  end_passage();
}

void PassageReader::add_sentence(std::string_view sentence, int64_t tokens, Place place,
                                 std::string_view between) {
  if (passage_tokens_ + tokens > options_.tokens) end_passage();
  if (passage_.text.empty()) {
    passage_.line = place.line;
  } else {
    passage_.text += between;
  }
  append_lines(sentence, passage_.text);
  passage_tokens_ += tokens;
}

void PassageReader::cut_sentence(std::string_view sentence, Place place) {
  std::vector<text::Piece> pieces;
  tokenizer_.encode_with_offsets(sentence, pieces);
  const auto most = static_cast<size_t>(options_.tokens);
  size_t first = 0;
  while (first < pieces.size()) {
    size_t end = std::min(first + most, pieces.size());
    // Back to the beginning of a word, but not so far that little is left.
    const auto begins_word = [&](size_t index) {
      const size_t at = pieces[index].begin;
      return at > 0 && kWhite.find(sentence[at - 1]) != std::string_view::npos;
    };
    size_t word = end;
    while (word < pieces.size() && word > first + most / 2 && !begins_word(word)) --word;
    if (word > first + most / 2) end = word;
    const size_t from = pieces[first].begin;
    const size_t to = end < pieces.size() ? size_t{pieces[end].begin} : sentence.size();
    end_passage();
    const std::string_view part = trimmed(sentence.substr(from, std::max(to, from + 1) - from));
    if (!part.empty())
      add_sentence(part, static_cast<int64_t>(end - first), place_in(sentence, part, place), "");
    first = end;
  }
  end_passage();
}

void PassageReader::end_passage() {
  passage_tokens_ = 0;
  if (passage_.text.empty()) return;
  ready_.push_back(passage_);
  passage_.text.clear();
}

}  // namespace onebit::search
