#include "onebit/data/text/word_piece.h"

namespace onebit::text {
namespace {

uint64_t bytes_of_tokens(const Vocabulary& vocabulary) {
  uint64_t bytes = 0;
  for (int32_t id = 0; id < vocabulary.model_size(); ++id) bytes += vocabulary.token(id).size();
  return bytes;
}

}  // namespace

WordPiece::WordPiece(const Vocabulary& vocabulary)
    : trie_(2, bytes_of_tokens(vocabulary)), unknown_id_(vocabulary.unknown_id()) {
  for (int32_t id = 0; id < vocabulary.model_size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.empty()) continue;
    if (vocabulary.is_continuation(id)) {
      trie_.insert(token.substr(2), kContinuationRoot, id);
    } else {
      trie_.insert(token, kWordRoot, id);
    }
  }
  trie_.shrink();
}

void WordPiece::split(std::string_view word, std::vector<WordPart>& parts) const {
  parts.clear();
  const uint32_t size = static_cast<uint32_t>(word.size());
  uint32_t node = kWordRoot;
  for (uint32_t begin = 0; begin < size;) {
    WordPart best{-1, 0};
    for (uint32_t i = begin; i < size; ++i) {
      node = trie_.next(node, word[i]);
      if (node == PieceTrie::kNone) break;
      if (trie_.accepted(node) >= 0) best = {trie_.accepted(node), i + 1};
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
