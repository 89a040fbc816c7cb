#include "onebit/data/text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

constexpr double kUnknownPenalty = 10;

uint64_t bytes_of(const std::vector<std::string>& pieces) {
  uint64_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

Unigram::Unigram(const std::vector<std::string>& pieces, std::vector<double> scores,
                 Options options)
    : trie_(1, bytes_of(pieces)),
      scores_(std::move(scores)),
      options_(options),
      unknown_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty) {
  ONEBIT_INVARIANT(pieces.size() == scores_.size());
  byte_ids_.fill(-1);
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].empty()) continue;
    trie_.insert(pieces[id], 0, static_cast<int32_t>(id));
  }
  if (options_.has_byte_fallback) {
    std::unordered_map<std::string_view, size_t> ids;
    for (size_t id = 0; id < pieces.size(); ++id) ids[pieces[id]] = id;
    for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      const auto found = ids.find(fmt::format("<0x{:02X}>", byte));
      if (found != ids.end()) byte_ids_[byte] = static_cast<int32_t>(found->second);
    }
  }
  trie_.shrink();
}

// Sums are double precision from the front, and the first of equally good splits stays: other
// orders and precisions give other pieces.
void Unigram::find_best(std::string_view word, std::vector<Node>& nodes) const {
  nodes.assign(word.size() + 1, Node{0, 0, -1});
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    Node& node = nodes[end];
    const double sum = score + nodes[begin].score;
    if (node.id < 0 || sum > node.score) node = {sum, static_cast<uint32_t>(begin), id};
  };
  for (size_t begin = 0; begin < word.size();) {
    const size_t character = begin + decode_utf8(word.substr(begin)).size_bytes;
    bool has_single = false;
    uint32_t trie_node = 0;
    for (size_t end = begin; end < word.size();) {
      trie_node = trie_.next(trie_node, word[end++]);
      if (trie_node == PieceTrie::kNone) break;
      const int32_t id = trie_.accepted(trie_node);
      if (id < 0) continue;
      offer(begin, end, id, scores_[static_cast<size_t>(id)]);
      has_single = has_single || end == character;
    }
    if (!has_single) offer(begin, character, options_.unknown_id, unknown_score_);
    begin = character;
  }
}

void Unigram::add_unknown(std::string_view word, uint32_t begin, uint32_t end,
                          std::vector<Piece>& parts) const {
  // Unknown characters together may be a piece that was not the best one.
  uint32_t node = 0;
  for (uint32_t at = begin; at < end && node != PieceTrie::kNone; ++at) {
    node = trie_.next(node, word[at]);
  }
  if (node != PieceTrie::kNone && trie_.accepted(node) >= 0) {
    parts.push_back({trie_.accepted(node), begin, end});
    return;
  }
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<uint8_t>(byte)]; };
  const std::string_view text = word.substr(begin, end - begin);
  const bool has_bytes =
      options_.has_byte_fallback &&
      std::all_of(text.begin(), text.end(), [&](char b) { return id_of(b) >= 0; });
  if (!has_bytes) {
    parts.push_back({options_.unknown_id, begin, end});
    return;
  }
  // They are listed from the end, and reversed afterwards.
  for (size_t i = text.size(); i > 0; --i) parts.push_back({id_of(text[i - 1]), begin, end});
}

void Unigram::split(std::string_view word, std::vector<Piece>& parts) const {
  parts.clear();
  std::vector<Node> nodes;
  find_best(word, nodes);
  for (uint32_t end = static_cast<uint32_t>(word.size()); end > 0;) {
    const Node& node = nodes[end];
    uint32_t begin = node.begin;
    if (node.id != options_.unknown_id) {
      parts.push_back({node.id, begin, end});
    } else {
      while (begin > 0 && nodes[begin].id == options_.unknown_id) begin = nodes[begin].begin;
      add_unknown(word, begin, end, parts);
    }
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
}

}  // namespace onebit::text
