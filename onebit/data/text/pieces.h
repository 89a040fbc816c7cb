// Pieces of words, and what the models that find them have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::text {

// A token and the byte range of the text that it represents. Tokens for single bytes of a character
// may share the range.
struct Piece {
  int32_t id;
  uint32_t begin, end;

  bool operator==(const Piece&) const = default;
};

// By byte, the id of its token "<0x41>", or -1. Used for characters that the vocabulary lacks.
using ByteIds = std::array<int32_t, 256>;

// GPT-2's characters for bytes: printable ones stand for themselves, the others follow U+0100.
std::string byte_symbol(uint8_t byte);
// The bytes for which a text of such characters stands, or nothing if it has another character.
std::optional<std::string> bytes_of_symbols(std::string_view symbols);

// A byte trie of pieces: finds all pieces at the front of a text. Its transitions are in an
// open-addressing table.
class PieceTrie {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // `roots` empty tries with the numbers 0, 1 ... for pieces of at most `bytes` bytes in total.
  // Error: more bytes than node numbers.
  PieceTrie(uint32_t roots, uint64_t bytes);

  // Adds a piece below a root. Of equal pieces the last id counts.
  void insert(std::string_view piece, uint32_t root, int32_t id);
  // Tries share prefixes: makes the table as small as its edges allow. Call it once, at the end.
  void shrink();

  // The node behind `byte`, or kNone.
  uint32_t next(uint32_t node, char byte) const {
    const Edge& edge = edges_[place((node << 8) | static_cast<uint8_t>(byte))];
    return edge.key == kNone ? kNone : edge.node;
  }
  // The piece that ends at a node, or -1.
  int32_t accepted(uint32_t node) const { return accepted_[node]; }

 private:
  struct Edge {
    uint32_t key = kNone;
    uint32_t node = 0;
  };
  // Gives the table room for so many edges.
  void resize(uint64_t edges);
  // The slot of a key, or the slot where it would be inserted.
  size_t place(uint32_t key) const {
    size_t i = (key * 0x9E3779B1u) >> shift_;
    while (edges_[i].key != key && edges_[i].key != kNone) i = (i + 1) & (edges_.size() - 1);
    return i;
  }

  std::vector<Edge> edges_;
  int shift_ = 0;
  std::vector<int32_t> accepted_;  // by node
};

}  // namespace onebit::text
