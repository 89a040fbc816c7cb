#include "onebit/ground/recipe/recipe_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "onebit/ground/base/json.h"

namespace onebit {

namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// The decimal number that is meant by one that other languages have: 16 for 0x10, 10 for 010 and
// +10, 1000 for 1_000, 0.5 for .5. Empty: it is not known.
std::string decimal_of(std::string word) {
  std::erase(word, '_');
  const bool is_negative = word.starts_with('-');
  word.erase(0, word.find_first_not_of("+-"));
  const std::string_view start = std::string_view(word).substr(0, 2);
  const int base = start == "0x" || start == "0X"   ? 16
                   : start == "0o" || start == "0O" ? 8
                   : start == "0b" || start == "0B" ? 2
                                                    : 10;
  if (base != 10) {
    uint64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 2, end, value, base);
    word = error == std::errc() && stop == end ? std::to_string(value) : "";
  } else {
    word.erase(0, std::min(word.find_first_not_of('0'), word.size()));
    if (word.empty() || !is_digit(word.front())) word.insert(0, "0");
    const size_t point = word.find('.');
    if (point != std::string::npos && (point + 1 == word.size() || !is_digit(word[point + 1]))) {
      word.insert(point + 1, "0");
    }
  }
  if (word.empty() || !Json::accept(word)) return "";
  return (is_negative ? "-" : "") + word;
}

}  // namespace

size_t comment_end(std::string_view text, size_t begin) {
  const bool is_block = text.substr(begin).starts_with("/*");
  const size_t end = is_block ? text.find("*/", begin + 2) : text.find('\n', begin);
  return end == std::string_view::npos ? text.size() : end + (is_block ? 2 : 0);
}

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}

bool is_number_word(std::string_view word) {
  const size_t digit = word.find_first_not_of("+-.");
  return digit <= 2 && digit < word.size() && is_digit(word[digit]);
}

std::string foreign_number_in(const std::string& text) {
  std::string last_text, key;
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    const size_t begin = at;
    if (here == '/' && at + 1 < text.size()) {
      at = comment_end(text, at);
    } else if (here == '"') {
      at = end_of_string(text, at);
      last_text = text.substr(begin, std::min(at - begin, kShownOfWord));
    } else if (is_of_word(here)) {
      while (at < text.size() && is_of_word(text[at])) ++at;
      const std::string word = text.substr(begin, at - begin);
      if (is_number_word(word) && !Json::accept(word)) {
        const std::string meant = decimal_of(word);
        return fmt::format("{} {}{}{}", key.empty() ? "There is" : "The value of " + key + " is",
                           word.substr(0, kShownOfWord), ", which is no number of JSON",
                           meant.empty() ? "" : ": write " + meant);
      }
      last_text = word.substr(0, kShownOfWord);
    } else {
      if (here == ':') key = last_text;
      ++at;
    }
  }
  return "";
}

}  // namespace onebit
