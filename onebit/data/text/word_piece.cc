#include "onebit/data/text/word_piece.h"

#include <bit>

#include "onebit/ground/base/error.h"

namespace onebit::text {

WordPiece::WordPiece(const Vocabulary& vocabulary)
    : accepted_(2, -1), unknown_id_(vocabulary.unknown_id()) {
  uint64_t bytes = 0;
  for (int32_t id = 0; id < vocabulary.model_size(); ++id) bytes += vocabulary.token(id).size();
  // A node's number and a byte form a 32-bit key.
  require(bytes < (uint64_t{1} << 24), "the vocabulary's tokens are {} bytes long; at most {} fit",
          bytes, (uint64_t{1} << 24) - 1);
  reserve(bytes);
  for (int32_t id = 0; id < vocabulary.model_size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.empty()) continue;
    if (vocabulary.is_continuation(id)) {
      insert(token.substr(2), kContinuationRoot, id);
    } else {
      insert(token, kWordRoot, id);
    }
  }
  // Tokens share prefixes: a table sized for the actual edges is much smaller.
  std::vector<Edge> sparse;
  sparse.swap(edges_);
  reserve(accepted_.size());
  for (const Edge& edge : sparse) {
    if (edge.key != kNone) edges_[place(edge.key)] = edge;
  }
}

void WordPiece::reserve(uint64_t edges) {
  const int bits = std::bit_width(2 * edges);
  edges_.assign(size_t{1} << bits, Edge{});
  shift_ = 32 - bits;
}

// The slot of a key, or the slot where it would be inserted.
size_t WordPiece::place(uint32_t key) const {
  size_t i = (key * 0x9E3779B1u) >> shift_;
  while (edges_[i].key != key && edges_[i].key != kNone) i = (i + 1) & (edges_.size() - 1);
  return i;
}

void WordPiece::insert(std::string_view token, uint32_t root, int32_t id) {
  uint32_t node = root;
  for (const char c : token) {
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

void WordPiece::split(std::string_view word, std::vector<WordPart>& parts) const {
  parts.clear();
  const uint32_t size = static_cast<uint32_t>(word.size());
  uint32_t node = kWordRoot;
  for (uint32_t begin = 0; begin < size;) {
    WordPart best{-1, 0};
    for (uint32_t i = begin; i < size; ++i) {
      const Edge& edge = edges_[place((node << 8) | static_cast<uint8_t>(word[i]))];
      if (edge.key == kNone) break;
      node = edge.node;
      if (accepted_[node] >= 0) best = {accepted_[node], i + 1};
    }
    if (best.id < 0) {
      parts.assign(1, {unknown_id_, size});
      return;
    }
    parts.push_back(best);
    begin = best.end;
    node = kContinuationRoot;
  }
}

}  // namespace onebit::text
