#include "onebit/ground/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace onebit {

namespace {

// The bytes of the control character at the beginning of `text`, 0 if there is none.
size_t control_bytes(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x20) return first == '\n' || first == '\t' ? 0 : 1;
  if (first == 0x7F) return 1;
  if (first == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
  if (first != 0xE2) return 0;
  const bool reverses = (byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) ||
                        (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
  return reverses ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t control = control_bytes(text);
    for (size_t i = 0; i < control; ++i) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    }
    if (control == 0) result += text[0];
    text.remove_prefix(std::max<size_t>(control, 1));
  }
  return result;
}

std::string printable_line(std::string_view text) {
  std::string result;
  for (const char character : printable(text)) {
    if (character == '\n' || character == '\t') {
      result += character == '\n' ? "\\n" : "\\t";
    } else {
      result += character;
    }
  }
  return result;
}

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

std::string quote(std::string_view name) {
  constexpr size_t kMaxShown = 120;
  std::string text = "\"";
  for (const char character : name.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte >= 0x7F) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += character;
    }
  }
  return text + (name.size() > kMaxShown ? "...\"" : "\"");
}

}  // namespace onebit
