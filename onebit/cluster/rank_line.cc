#include "onebit/cluster/rank_line.h"

#include <fmt/format.h>

#include <charconv>

#include "onebit/cluster/subprocess.h"

namespace onebit::cluster {
namespace {

constexpr char kBegin = '\x1e', kMiddle = '\x1f';  // ASCII's separators of records and units

std::optional<RankLine> parsed(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  constexpr std::string_view kKinds = "oevx";
  if (kKinds.find(text[0]) == std::string_view::npos) return std::nullopt;
  RankLine line = {.kind = static_cast<LineKind>(text[0]), .rank = 0, .text = {}};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, line.rank);
  if (error != std::errc() || stop == end || *stop != kMiddle) return std::nullopt;
  line.text = std::string(stop + 1, end);
  return line;
}

}  // namespace

std::string marked(const RankLine& line) {
  return fmt::format("{}{}{}{}{}\n", kBegin, static_cast<char>(line.kind), line.rank, kMiddle,
                     line.text);
}

RankLineReader::Lines RankLineReader::add(std::string_view bytes) {
  rest_ += bytes;
  Lines lines;
  for (const std::string& line : take_lines(rest_)) {
    // A line of one rank may have been cut by a line of another: a mark begins a new one anywhere.
    for (size_t begin = 0; begin <= line.size();) {
      const size_t mark = line.find(kBegin, begin == 0 && line.starts_with(kBegin) ? 1 : begin);
      const std::string_view part = std::string_view(line).substr(begin, mark - begin);
      std::optional<RankLine> ours;
      if (part.starts_with(kBegin)) ours = parsed(part.substr(1));
      if (!ours && begin > 0) ours = parsed(part);
      if (ours) {
        lines.of_ranks.push_back(std::move(*ours));
      } else if (!part.empty() || line.empty()) {
        lines.unmarked.emplace_back(part);
      }
      if (mark == std::string::npos) break;
      begin = mark + 1;
    }
  }
  return lines;
}

}  // namespace onebit::cluster
