#include "onebit/data/text/piece.h"

#include <unordered_map>

#include "onebit/data/text/utf8.h"

namespace onebit::text {
namespace {

bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

std::array<char32_t, 256> make_symbols() {
  std::array<char32_t, 256> symbols{};
  char32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) symbols[byte] = is_printable(byte) ? byte : next++;
  return symbols;
}

}  // namespace

std::string byte_symbol(uint8_t byte) {
  static const std::array<char32_t, 256> symbols = make_symbols();
  std::string text;
  append_utf8(symbols[byte], text);
  return text;
}

std::optional<std::string> bytes_of_symbols(std::string_view symbols) {
  static const std::unordered_map<std::string, char> bytes = [] {
    std::unordered_map<std::string, char> map;
    for (int byte = 0; byte < 256; ++byte) {
      map.emplace(byte_symbol(static_cast<uint8_t>(byte)), static_cast<char>(byte));
    }
    return map;
  }();
  std::string text;
  while (!symbols.empty()) {
    const size_t size = decode_utf8(symbols).size_bytes;
    const auto found = bytes.find(std::string(symbols.substr(0, size)));
    if (found == bytes.end()) return std::nullopt;
    text.push_back(found->second);
    symbols.remove_prefix(size);
  }
  return text;
}

}  // namespace onebit::text
