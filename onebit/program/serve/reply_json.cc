#include "onebit/program/serve/reply_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

#include "onebit/ground/base/json.h"

namespace onebit::serve {

static_assert(std::endian::native == std::endian::little);

void append_json(std::span<const float> numbers, std::string& text) {
  fmt::memory_buffer buffer;
  buffer.push_back('[');
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) buffer.push_back(',');
    fmt::format_to(std::back_inserter(buffer), "{}", numbers[i]);
  }
  buffer.push_back(']');
  text.append(buffer.data(), buffer.size());
}

void append_json(std::string_view value, std::string& text) {
  const bool is_plain = std::all_of(value.begin(), value.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (!is_plain) {
    text += json_text(Json(value));
    return;
  }
  text += '"';
  text += value;
  text += '"';
}

void end_list(std::string& text) {
  if (text.back() == ',') text.pop_back();
  text += ']';
}

void reserve_more(size_t bytes, std::string& text) {
  if (text.capacity() - text.size() >= bytes) return;
  text.reserve(std::max(text.size() + bytes, 2 * text.capacity()));
}

std::string base64_of(std::span<const float> numbers) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(numbers);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? std::to_integer<uint32_t>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      text.push_back(i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=');
    }
  }
  return text;
}

}  // namespace onebit::serve
