#include "onebit/ground/recipe/hjson.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "onebit/ground/base/json.h"

namespace onebit {
namespace {

// The offset of the line end, or the end of a comment of the kind that parse_json() skips.
size_t end_of_comment(std::string_view text, size_t begin) {
  const bool is_block = text.substr(begin).starts_with("/*");
  const size_t end = is_block ? text.find("*/", begin + 2) : text.find('\n', begin);
  return end == std::string_view::npos ? text.size() : end + (is_block ? 2 : 0);
}

constexpr size_t kShown = 60;  // bytes of a word

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}

// Numbers, true, false and null are JSON, and so are NaN and Infinity to programs that write them.
bool is_json_word(std::string_view word) {
  const bool is_number = std::isdigit(static_cast<unsigned char>(word.front())) != 0 ||
                         (word.front() == '-' && word.size() > 1);
  return is_number || word == "true" || word == "false" || word == "null" || word == "NaN" ||
         word == "Infinity";
}

}  // namespace

std::string without_hjson(std::string text) {
  size_t comma = std::string::npos;  // the last token, if it is a comma
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    if (here == '#' || (here == '/' && at + 1 < text.size())) {
      const size_t end = end_of_comment(text, at);
      if (here == '#')
        std::fill(text.begin() + static_cast<ptrdiff_t>(at),
                  text.begin() + static_cast<ptrdiff_t>(end), ' ');
      at = end;
      continue;
    }
    if ((here == '}' || here == ']') && comma != std::string::npos) text[comma] = ' ';
    if (here == ',') {
      comma = at;
    } else if (std::string_view(" \t\r\n").find(here) == std::string_view::npos) {
      comma = std::string::npos;
    }
    at = here == '"' ? end_of_string(text, at) : at + 1;
  }
  return text;
}

std::string hjson_in(const std::string& text) {
  bool after_value = false;  // the last token ends a value, or is a key
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    if (here == '/' && at + 1 < text.size()) {
      at = end_of_comment(text, at);
      continue;
    }
    if (here == '\'') return "a text in single quotes";
    const size_t begin = at;
    const bool is_word = is_of_word(here), is_text = here == '"';
    while (is_word && at < text.size() && is_of_word(text[at])) ++at;
    if (is_word && !is_json_word(std::string_view(text).substr(begin, at - begin))) {
      return "the word \"" + text.substr(begin, std::min(at - begin, kShown)) + "\" without quotes";
    }
    if (is_text) at = end_of_string(text, at);
    if (after_value && (is_word || is_text || here == '{' || here == '[')) {
      const size_t size = std::max<size_t>(at - begin, 1);
      return "no comma before " + (size <= kShown ? text.substr(begin, size) : "a text");
    }
    if (!is_word && !is_text) ++at;
    if (std::isspace(static_cast<unsigned char>(here)) != 0) continue;
    after_value = is_word || is_text || here == '}' || here == ']';
  }
  return "";
}

}  // namespace onebit
