// Whole numbers in text.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace onebit {

// Parses all of `text` as decimal digits with "-" before a negative number. Returns nothing for any
// other text, surrounding blanks included, and for a number that T cannot represent.
template <std::integral T>
std::optional<T> whole_number(std::string_view text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace onebit
