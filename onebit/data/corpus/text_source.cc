#include "onebit/data/corpus/text_source.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "onebit/data/corpus/text_lines.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"

namespace onebit::corpus {
namespace {

bool ends_a_sentence(char c) {
  return std::string_view(".!?:;,\"')]").find(c) != std::string_view::npos;
}

// Counts positions where a sentence seems to end inside a line: ". A".
size_t inner_ends(std::string_view line) {
  size_t count = 0;
  for (size_t i = 0; i + 2 < line.size(); ++i) {
    const bool stop = line[i] == '.' || line[i] == '!' || line[i] == '?';
    const char next = line[i + 2];
    count += stop && line[i + 1] == ' ' && ((next >= 'A' && next <= 'Z') || next == '"');
  }
  return count;
}

struct LineStatistics {
  double lines = 0, blocks = 0, ended = 0, inner = 0;
};

LineStatistics statistics_of(std::string_view sample) {
  LineStatistics found;
  bool in_block = false;
  for_each_line(sample, [&](std::string_view whole) {
    const std::string_view line = stripped(whole);
    if (line.empty()) {
      in_block = false;
      return;
    }
    found.blocks += in_block ? 0 : 1;
    in_block = true;
    found.lines += 1;
    // The last byte of a closing quotation mark or an ideographic full stop is above 127.
    const bool wide = static_cast<unsigned char>(line.back()) > 127;
    found.ended += wide || ends_a_sentence(line.back()) ? 1 : 0;
    found.inner += static_cast<double>(inner_ends(line));
  });
  return found;
}

}  // namespace

const char* name(TextFormat format) {
  switch (format) {
    case TextFormat::kAuto:
      return "auto";
    case TextFormat::kLines:
      return "lines";
    case TextFormat::kProse:
      return "prose";
    case TextFormat::kDocuments:
      return "documents";
    case TextFormat::kJsonl:
      return "jsonl";
  }
  return "auto";
}

TextFormat text_format_from_name(const std::string& text) {
  std::vector<std::string> known;
  for (const TextFormat format : {TextFormat::kAuto, TextFormat::kLines, TextFormat::kProse,
                                  TextFormat::kDocuments, TextFormat::kJsonl}) {
    if (text == name(format)) return format;
    known.emplace_back(name(format));
  }
  const std::string near = nearest_word(text, known);
  fail("text format \"{}\" is not known: it must be one of {}{}", text, fmt::join(known, ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

TextFormat detect_text_format(std::string_view sample, std::string& reason) {
  const LineStatistics found = statistics_of(sample);
  const double lines = std::max(found.lines, 1.0);
  const double lines_per_block = found.lines / std::max(found.blocks, 1.0);
  const double inner_per_line = found.inner / lines;
  const double ended = found.ended / lines;
  if (found.lines > 1 && found.blocks > 1 && lines_per_block < 1.5) {
    reason = fmt::format(
        "an empty line follows nearly every line ({:.1f} lines per block): they are read as the "
        "paragraphs of one document; if each is a document, use --format documents,",
        lines_per_block);
    return TextFormat::kProse;
  }
  if (inner_per_line > 0.7) {
    reason = fmt::format("a line has {:.1f} sentences on average", inner_per_line + 1);
    return TextFormat::kProse;
  }
  if (ended < 0.5) {
    reason = fmt::format("only {:.0f} % of the lines end like a sentence", 100 * ended);
    return TextFormat::kProse;
  }
  reason =
      fmt::format("{:.0f} % of the lines end like a sentence, few have more than one", 100 * ended);
  return TextFormat::kLines;
}

namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
// Longer text without a line end (or, in prose, an empty line) is cut at the end of a word.
constexpr size_t kLongestTextBytes = size_t{4} << 20;
constexpr size_t kLongestJsonBytes = size_t{256} << 20;

// The position after the last line end, or 0.
size_t after_last_line(std::string_view text) {
  // Much faster than rfind, which compares one byte at a time.
  const void* end = text.empty() ? nullptr : ::memrchr(text.data(), '\n', text.size());
  return end == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(end) - text.data()) + 1;
}

// The position after the last empty line, or 0.
size_t after_last_empty_line(std::string_view text) {
  size_t end = after_last_line(text);
  while (end > 0) {
    const size_t begin = after_last_line(text.substr(0, end - 1));
    if (stripped(text.substr(begin, end - begin)).empty()) return end;
    end = begin;
  }
  return 0;
}

// The position after the last blank, or else at a character boundary.
size_t after_last_word(std::string_view text) {
  const size_t blank = text.find_last_of(" \t\n");
  if (blank != std::string_view::npos) return blank + 1;
  size_t end = text.size();
  while (end > 1 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80) --end;
  return std::max<size_t>(end - 1, 1);
}

}  // namespace

void check_utf8(const TextBlock& block) {
  const std::optional<size_t> bad = text::first_invalid_utf8(block.text);
  if (!bad) return;
  fail(
      "{}: byte {} (0x{:02x}) is not UTF-8; convert the file, for instance with iconv -f "
      "ISO-8859-1 -t UTF-8",
      block.source, block.offset_bytes + *bad, static_cast<unsigned char>(block.text[*bad]));
}

TextSource::TextSource(std::vector<InputFile> files, TextFormat format)
    : files_(std::move(files)), format_(format) {
  const bool known = std::all_of(files_.begin(), files_.end(), [](const InputFile& file) {
    return file.size_bytes > 0 || file.is_found;
  });
  for (const InputFile& file : files_) total_bytes_ += known ? file.size_bytes : 0;
}

uint64_t TextSource::consumed_bytes() const {
  return finished_bytes_ + (stream_ ? stream_->consumed_bytes() : 0);
}

TextFormat TextSource::format_of_file() {
  if (files_[next_file_ - 1].jsonl || format_ == TextFormat::kJsonl) return TextFormat::kJsonl;
  if (format_ != TextFormat::kAuto) return format_;
  if (at_end_ && stripped(pending_).empty()) return TextFormat::kLines;
  std::string reason;
  const TextFormat format = detect_text_format(pending_, reason);
  Found& found = found_[format];
  if (found.files++ == 0) {
    found.reason = std::move(reason);
    found.first_file = files_[next_file_ - 1].name;
  }
  return format;
}

std::string TextSource::decision() const {
  std::vector<std::string> choices;
  for (const auto& [format, found] : found_) {
    const bool is_only_file = found_.size() == 1 && found.files == 1;
    choices.push_back(
        fmt::format("{}{}, because {} in {}", name(format),
                    is_only_file ? "" : fmt::format(" ({})", counted(found.files, "file")),
                    found.reason, found.first_file));
  }
  return choices.empty() ? "" : fmt::format("text format: {}", fmt::join(choices, "; "));
}

std::string TextSource::empty_files() const {
  if (empty_files_ == 0) return "";
  return empty_files_ == 1 ? fmt::format("1 file is empty: {}", first_empty_file_)
                           : fmt::format("{} are empty; first: {}", counted(empty_files_, "file"),
                                         first_empty_file_);
}

void TextSource::open_next() {
  const InputFile& file = files_[next_file_++];
  stream_ = open_byte_stream(file.path, file.name);
  at_end_ = false;
  has_text_ = false;
  offset_bytes_ = 0;
  line_ = 1;
  pending_.clear();
  fill(kBlockBytes);
  refuse_utf16(pending_, file.name);
  refuse_carriage_returns(pending_, file.name);
  if (pending_.starts_with(kByteOrderMark)) {
    pending_.erase(0, kByteOrderMark.size());
    offset_bytes_ = kByteOrderMark.size();
  }
  file_format_ = format_of_file();
}

// Reads until `wanted_bytes` are pending, and returns false if the file ends before.
bool TextSource::fill(size_t wanted_bytes) {
  size_t used = pending_.size();
  if (used >= wanted_bytes) return true;
  pending_.resize(wanted_bytes);
  while (used < wanted_bytes && !at_end_) {
    const size_t got = stream_->read(pending_.data() + used, wanted_bytes - used);
    at_end_ = got == 0;
    used += got;
  }
  pending_.resize(used);
  return used >= wanted_bytes;
}

// Returns how many pending bytes form a block, or 0 if more must be read.
size_t TextSource::cut_position() const {
  if (at_end_) return pending_.size();
  const bool is_prose =
      file_format_ == TextFormat::kProse || file_format_ == TextFormat::kDocuments;
  const size_t cut = is_prose ? after_last_empty_line(pending_) : after_last_line(pending_);
  if (cut > 0) return cut;
  if (file_format_ == TextFormat::kJsonl) {
    require(pending_.size() < kLongestJsonBytes,
            "{}:{}: the line is longer than {} MiB: split the document",
            files_[next_file_ - 1].name, line_, kLongestJsonBytes >> 20);
    return 0;
  }
  if (pending_.size() < kLongestTextBytes) return 0;
  const size_t line = after_last_line(pending_);
  return line > 0 ? line : after_last_word(pending_);
}

bool TextSource::read(TextBlock& block) {
  if (!stream_) {
    if (next_file_ == files_.size()) return false;
    open_next();
  }
  size_t wanted = kBlockBytes;
  fill(wanted);
  size_t cut = cut_position();
  while (cut == 0 && !at_end_) {
    wanted *= 2;
    fill(wanted);
    cut = cut_position();
  }
  const InputFile& file = files_[next_file_ - 1];
  block.source = file.name;
  block.offset_bytes = offset_bytes_;
  block.first_line = line_;
  block.format = file_format_;
  block.text.swap(pending_);
  pending_.assign(block.text, cut);
  block.text.resize(cut);
  offset_bytes_ += cut;
  line_ += static_cast<uint64_t>(std::count(block.text.begin(), block.text.end(), '\n'));
  has_text_ = has_text_ || !stripped(block.text).empty();
  // Reads one byte ahead, so that the last block can be marked as the last.
  block.ends_file = pending_.empty() && !fill(1);
  if (block.ends_file) {
    require(has_text_ || file.is_found, "{}: is empty", file.name);
    if (!has_text_ && empty_files_++ == 0) first_empty_file_ = file.name;
    finished_bytes_ += stream_->consumed_bytes();
    stream_.reset();
  }
  return true;
}

}  // namespace onebit::corpus
