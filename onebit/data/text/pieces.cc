#include "onebit/data/text/pieces.h"

#include <bit>
#include <unordered_map>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

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

PieceTrie::PieceTrie(uint32_t roots, uint64_t bytes) : accepted_(roots, -1) {
  // A node's number and a byte form a 32-bit key.
  require(bytes < (uint64_t{1} << 24) - roots,
          "the vocabulary's tokens are {} bytes long; at most {} fit", bytes,
          (uint64_t{1} << 24) - roots - 1);
  constexpr uint64_t kFewEdges = 1024;
  resize(kFewEdges);
}

void PieceTrie::resize(uint64_t edges) {
  const int bits = std::bit_width(2 * edges + 1);
  if (edges_.size() == size_t{1} << bits) return;
  std::vector<Edge> former(size_t{1} << bits, Edge{});
  former.swap(edges_);
  shift_ = 32 - bits;
  for (const Edge& edge : former) {
    if (edge.key != kNone) edges_[place(edge.key)] = edge;
  }
}

void PieceTrie::insert(std::string_view piece, uint32_t root, int32_t id) {
  uint32_t node = root;
  for (const char c : piece) {
    const uint32_t key = (node << 8) | static_cast<uint8_t>(c);
    size_t at = place(key);
    if (edges_[at].key == kNone) {
      if (2 * accepted_.size() >= edges_.size()) {
        resize(edges_.size() / 2);  // twice the slots
        at = place(key);
      }
      edges_[at] = {key, static_cast<uint32_t>(accepted_.size())};
      accepted_.push_back(-1);
    }
    node = edges_[at].node;
  }
  accepted_[node] = id;
}

void PieceTrie::shrink() {
  resize(accepted_.size());
}

}  // namespace onebit::text
