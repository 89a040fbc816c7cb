#include "onebit/data/text/piece_trie.h"

#include <bit>

#include "onebit/ground/base/error.h"

namespace onebit::text {

PieceTrie::PieceTrie(uint32_t roots, uint64_t bytes) : accepted_(roots, -1) {
  // A node's number and a byte form a 32-bit key.
  require(bytes < (uint64_t{1} << 24) - roots,
          "the vocabulary's tokens are {} bytes long; at most {} fit", bytes,
          (uint64_t{1} << 24) - roots - 1);
  reserve(bytes);
}

void PieceTrie::reserve(uint64_t edges) {
  const int bits = std::bit_width(2 * edges + 1);
  edges_.assign(size_t{1} << bits, Edge{});
  shift_ = 32 - bits;
}

void PieceTrie::insert(std::string_view piece, uint32_t root, int32_t id) {
  uint32_t node = root;
  for (const char c : piece) {
    const uint32_t key = (node << 8) | static_cast<uint8_t>(c);
    Edge& edge = edges_[place(key)];
    if (edge.key == kNone) {
      edge = {key, static_cast<uint32_t>(accepted_.size())};
      accepted_.push_back(-1);
    }
    node = edge.node;
  }
  accepted_[node] = id;
}

void PieceTrie::shrink() {
  std::vector<Edge> sparse;
  sparse.swap(edges_);
  reserve(accepted_.size());
  for (const Edge& edge : sparse) {
    if (edge.key != kNone) edges_[place(edge.key)] = edge;
  }
}

}  // namespace onebit::text
