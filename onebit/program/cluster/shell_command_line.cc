#include "onebit/program/cluster/shell_command_line.h"

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

}  // namespace onebit::cluster
