#include "onebit/data/corpus/text_format.h"

#include <algorithm>
#include <vector>

#include "onebit/data/corpus/text_lines.h"
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

}  // namespace onebit::corpus
