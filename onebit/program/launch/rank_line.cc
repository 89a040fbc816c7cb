#include "onebit/program/launch/rank_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "onebit/ground/base/number.h"

namespace onebit::launch {
namespace {

constexpr char kBegin = '\x1e', kMiddle = '\x1f';  // ASCII record and unit separators
constexpr std::string_view kStatus = "status ", kSignal = "signal ";

struct Parsed {
  RankLine line;          // with the text received so far
  size_t missing = 0;     // bytes of the text that are still to come
  std::string_view rest;  // what follows the text
};

// Parses a line that begins with kBegin; nothing if its mark is incomplete.
std::optional<Parsed> parsed(std::string_view line) {
  constexpr std::string_view kKinds = "oevx";
  if (line.size() < 2 || kKinds.find(line[1]) == std::string_view::npos) return std::nullopt;
  Parsed found;
  found.line.kind = static_cast<LineKind>(line[1]);
  const char* end = line.data() + line.size();
  const auto rank = std::from_chars(line.data() + 2, end, found.line.rank);
  if (rank.ec != std::errc() || rank.ptr == end || *rank.ptr != ' ') return std::nullopt;
  size_t length = 0;
  const auto size = std::from_chars(rank.ptr + 1, end, length);
  if (size.ec != std::errc() || size.ptr == end || *size.ptr != kMiddle) return std::nullopt;
  const std::string_view text(size.ptr + 1, end);
  found.line.text = text.substr(0, length);
  found.missing = length - found.line.text.size();
  found.rest = text.substr(found.line.text.size());
  return found;
}

}  // namespace

std::string marked(RankLine line) {
  std::ranges::replace(line.text, kBegin, ' ');
  // The reader removes a carriage return at the end as the starter's, so the length must not
  // include one.
  line.text.erase(line.text.find_last_not_of('\r') + 1);
  return fmt::format("{}{}{} {}{}{}\n", kBegin, static_cast<char>(line.kind), line.rank,
                     line.text.size(), kMiddle, line.text);
}

std::string end_text(const cluster::Ended& ended) {
  return ended.signal != 0 ? fmt::format("{}{}", kSignal, ended.signal)
                           : fmt::format("{}{}", kStatus, ended.status);
}

std::optional<cluster::Ended> parse_end(std::string_view text) {
  const bool by_signal = text.starts_with(kSignal);
  if (!by_signal && !text.starts_with(kStatus)) return std::nullopt;
  const auto number = whole_number<int>(text.substr(by_signal ? kSignal.size() : kStatus.size()));
  if (!number) return std::nullopt;
  return by_signal ? cluster::Ended{.status = 0, .signal = *number}
                   : cluster::Ended{.status = *number, .signal = 0};
}

RankLineReader::Lines RankLineReader::add(std::string_view bytes) {
  rest_ += bytes;
  Lines lines;
  for (const std::string& line : cluster::take_lines(rest_)) {
    for (size_t begin = 0; begin <= line.size();) {
      const size_t mark = std::min(line.find(kBegin, begin + 1), line.size());
      add_part(std::string_view(line).substr(begin, mark - begin), mark < line.size(), lines);
      begin = std::max(mark, begin + 1);
      if (mark == line.size()) break;
    }
  }
  return lines;
}

// `cut`: another mark follows instead of the end of the line.
void RankLineReader::add_part(std::string_view part, bool cut, Lines& lines) {
  if (!part.starts_with(kBegin)) {
    add_unmarked(part, cut, lines);
    return;
  }
  std::optional<Parsed> found = parsed(part);
  if (found && found->missing == 0) {
    lines.of_ranks.push_back(std::move(found->line));
    if (!found->rest.empty())
      add_unmarked(found->rest, cut, lines);
    else if (cut)
      ++ends_to_come_;
  } else if (found || cut) {
    if (!cut) part.remove_suffix(complete_from_end(part, lines));
    cut_.emplace_back(part);
  } else {
    lines.unmarked.emplace_back(part);
  }
}

void RankLineReader::add_unmarked(std::string_view part, bool cut, Lines& lines) {
  if (part.empty() && ends_to_come_ > 0) {
    --ends_to_come_;
  } else if (complete_with(part, lines)) {
    return;
  } else if (cut && cut_.size() == 1) {
    cut_.front() += part;
  } else {
    lines.unmarked.emplace_back(part);
  }
}

bool RankLineReader::complete_with(std::string_view part, Lines& lines) {
  for (auto item = cut_.begin(); item != cut_.end(); ++item) {
    const std::string whole = *item + std::string(part);
    std::optional<Parsed> found = parsed(whole);
    if (!found || found->missing != 0 || !found->rest.empty()) continue;
    lines.of_ranks.push_back(std::move(found->line));
    cut_.erase(item);
    return true;
  }
  return false;
}

// `part` is incomplete although a newline follows, so its end belongs to a line that was cut
// before. Returns the number of those bytes.
size_t RankLineReader::complete_from_end(std::string_view part, Lines& lines) {
  for (const std::string& line : cut_) {
    const std::optional<Parsed> found = parsed(line);
    if (!found || found->missing >= part.size()) continue;
    const size_t bytes = found->missing;
    if (complete_with(part.substr(part.size() - bytes), lines)) return bytes;
  }
  return 0;
}

RankLineReader::Lines RankLineReader::finish() {
  Lines lines = add(rest_.empty() ? "" : "\n");
  for (const std::string& line : std::exchange(cut_, {})) {
    std::optional<Parsed> found = parsed(line);
    if (found) {
      lines.of_ranks.push_back(std::move(found->line));
    } else {
      lines.unmarked.push_back(line);
    }
  }
  return lines;
}

}  // namespace onebit::launch
