#include "onebit/program/cluster/host_command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "onebit/ground/base/error.h"

namespace onebit::cluster {

std::string shell_line(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_quoted(word);
  }
  return line;
}

Words split_words(std::string_view text, const std::string& place) {
  Words words;
  bool inside = false;  // a word, which may be empty: ''
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool escapes = letter == '\\' && quote != '\'' && at + 1 < text.size();
    if (quote == 0 && !escapes && std::isspace(static_cast<unsigned char>(letter)) != 0) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (escapes) {
      words.back() += text[++at];
    } else if (quote == 0 && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == quote) {
      quote = 0;
    } else {
      words.back() += letter;
    }
  }
  require(quote == 0, "{}: {}: the quote {} is not closed", place, text, quote);
  return words;
}

Words facts_words(const std::string& program, const HostQuestion& question) {
  Words words = {program, kDoctorCommand, kJsonOption};
  for (const std::string& path : question.inputs) {
    words.insert(words.end(), {kInputOption, path});
  }
  for (const std::string& path : question.stores) {
    words.insert(words.end(), {kStoreOption, path});
  }
  if (!question.output.empty()) words.insert(words.end(), {kRunOption, question.output});
  if (!question.interface.empty()) {
    words.insert(words.end(), {kInterfaceOption, question.interface});
  }
  return words;
}

Words rank_words(const std::string& program, const Words& training) {
  Words words = {program, kHostCommand, kRankCommand, "--", program};
  words.insert(words.end(), training.begin(), training.end());
  return words;
}

Words watch_words(const std::string& program, const HostWatchOptions& options) {
  return {program,
          kHostCommand,
          kWatchCommand,
          kLaunchOption,
          options.launch_id,
          kFolderOption,
          options.folder.string(),
          kLeaseOption,
          fmt::format("{}", options.lease_seconds)};
}

Words link_end_words(const std::string& program, const std::string& interface,
                     const std::vector<PortRange>& ranges) {
  Words words = {program, kHostCommand, kLinksCommand};
  if (!interface.empty()) words.insert(words.end(), {kInterfaceOption, interface});
  for (const PortRange& range : ranges) {
    words.insert(words.end(), {kPortsOption, fmt::format("{}-{}", range.first, range.last)});
  }
  return words;
}

}  // namespace onebit::cluster
