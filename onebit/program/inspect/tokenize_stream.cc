#include "onebit/program/inspect/tokenize_stream.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::inspect {
namespace {

// Formats one line's output in a buffer that is reused for the next line.
class LineWriter {
 public:
  LineWriter(text::Tokenizer& tokenizer, TokenizeFormat format)
      : tokenizer_(tokenizer), format_(format) {}

  std::string_view write(std::string_view line) {
    buffer_.clear();
    switch (format_) {
      case TokenizeFormat::kIds:
      case TokenizeFormat::kPieces:
        write_ids(line);
        break;
      case TokenizeFormat::kOffsets:
        write_offsets(line);
        break;
      case TokenizeFormat::kExplanation:
        write_explanation(line);
        break;
    }
    buffer_.push_back('\n');
    return {buffer_.data(), buffer_.size()};
  }

 private:
  void separate() {
    if (buffer_.size() > 0) buffer_.push_back(' ');
  }

  void write_ids(std::string_view line) {
    ids_.clear();
    tokenizer_.encode(line, ids_);
    for (const int32_t id : ids_) {
      separate();
      if (format_ == TokenizeFormat::kIds) {
        fmt::format_to(std::back_inserter(buffer_), "{}", id);
      } else {
        buffer_.append(std::string_view(tokenizer_.vocabulary().token(id)));
      }
    }
  }

  void write_offsets(std::string_view line) {
    pieces_.clear();
    tokenizer_.encode_with_offsets(line, pieces_);
    for (const text::Piece& piece : pieces_) {
      separate();
      fmt::format_to(std::back_inserter(buffer_), "{}:{}:{}", piece.id, piece.begin, piece.end);
    }
  }

  void write_explanation(std::string_view line) {
    words_.clear();
    tokenizer_.explain(line, words_);
    for (const text::ExplainedWord& word : words_) {
      const std::string_view raw = line.substr(word.begin, word.end - word.begin);
      fmt::format_to(std::back_inserter(buffer_), "{}-{}\t{}\t{}\t", word.begin, word.end, raw,
                     word.normalized);
      for (const text::Piece& piece : word.pieces) {
        fmt::format_to(std::back_inserter(buffer_), "{}{}={}",
                       &piece == word.pieces.data() ? "" : " ",
                       tokenizer_.vocabulary().token(piece.id), piece.id);
      }
      fmt::format_to(std::back_inserter(buffer_), "\t{}\n", text::outcome_text(word.outcome));
    }
  }

  text::Tokenizer& tokenizer_;
  TokenizeFormat format_;
  fmt::memory_buffer buffer_;
  std::vector<int32_t> ids_;
  std::vector<text::Piece> pieces_;
  std::vector<text::ExplainedWord> words_;
};

void require_written(const std::ostream& out, const std::string& source) {
  if (out.good()) return;
  const int error = errno;
  fail("standard output cannot be written: the tokens of {}{}", source,
       error == 0 ? "" : ": " + reason_of(error));
}

}  // namespace

void tokenize_stream(std::istream& in, std::ostream& out, text::Tokenizer& tokenizer,
                     TokenizeFormat format, const std::string& source) {
  LineWriter writer(tokenizer, format);
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    const auto bad = text::first_invalid_utf8(line);
    require(!bad, "{}:{}: not UTF-8 at byte {} of the line; convert the text to UTF-8", source,
            number, bad.value_or(0));
    const std::string_view text = writer.write(line);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    require_written(out, fmt::format("{}, line {}", source, number));
  }
  require(!in.bad(), "{}: cannot be read to its end", source);
  out.flush();
  require_written(out, source);
}

}  // namespace onebit::inspect
