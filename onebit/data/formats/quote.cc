#include "onebit/data/formats/quote.h"

#include <fmt/format.h>

#include <cstddef>

namespace onebit::formats {
namespace {

constexpr size_t kMaxShown = 120;

}  // namespace

std::string quote(std::string_view name) {
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

}  // namespace onebit::formats
