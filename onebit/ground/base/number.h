// Numbers in text.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
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

// Whether a decimal number, behind its sign, begins with a zero that another digit follows: 010 is
// eight to some programs and ten to others, so that command lines take it for neither.
inline bool has_leading_zeros(std::string_view number) {
  const size_t first = number.starts_with('-') || number.starts_with('+') ? 1 : 0;
  return number.size() > first + 1 && number[first] == '0' && number[first + 1] >= '0' &&
         number[first + 1] <= '9';
}

}  // namespace onebit
