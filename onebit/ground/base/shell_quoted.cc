#include "onebit/ground/base/shell_quoted.h"

#include <algorithm>
#include <cctype>

namespace onebit {
namespace {

bool is_plain(char letter) {
  constexpr std::string_view kOthers = "_-+=.,:/@%^";
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         kOthers.find(letter) != std::string_view::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string text = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      text += "'\\''";
    } else {
      text += letter;
    }
  }
  return text + "'";
}

}  // namespace onebit
