#include "onebit/data/corpus/text_lines.h"

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {

namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr size_t kMaxLineBytes = size_t{64} << 20;

}  // namespace

FileLines::FileLines(const Path& path)
    : name_(path == "-" ? "standard input" : path.string()),
      stream_(open_byte_stream(path, name_)) {}

std::string FileLines::place() const {
  return fmt::format("{}:{}", name_, number_);
}

bool FileLines::fill() {
  if (at_end_) return false;
  buffer_.erase(0, position_);
  position_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + kBlockBytes);
  const size_t got = stream_->read(buffer_.data() + kept, kBlockBytes);
  buffer_.resize(kept + got);
  at_end_ = got == 0;
  return !at_end_;
}

bool FileLines::next(std::string& line) {
  size_t searched = position_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos) {
    searched = buffer_.size() - position_;
    require(searched <= kMaxLineBytes,
            "{}:{}: the line is longer than 64 MiB: is this a text file?", name_, number_ + 1);
    if (!fill()) break;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos) {
    if (position_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  line.assign(buffer_, position_, end - position_);
  position_ = std::min(end + 1, buffer_.size());
  ++number_;
  if (number_ == 1) {
    refuse_utf16(line, name_);
    if (at_end_ && position_ == buffer_.size()) refuse_carriage_returns(line, name_);
  }
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (const auto bad = text::first_invalid_utf8(line)) {
    fail(
        "{}: byte {} of the line (0x{:02x}) is not UTF-8; convert the file, for instance with "
        "iconv -f ISO-8859-1 -t UTF-8",
        place(), *bad + 1, static_cast<unsigned char>(line[*bad]));
  }
  return true;
}

}  // namespace onebit::corpus
