#include "onebit/data/text/subword_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

// From this many symbols on, a queue finds the next pair faster than a search.
constexpr size_t kMany = 48;

uint64_t pair_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

constexpr double kUnknownPenalty = 10;

uint64_t bytes_of(const std::vector<std::string>& pieces) {
  uint64_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

BytePairs::BytePairs(const std::vector<std::string>& tokens, const std::vector<Merge>& merges,
                     Options options)
    : options_(std::move(options)) {
  TokenIds by_text;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) by_text[tokens[id]] = static_cast<int32_t>(id);
  }
  find_bytes(by_text);
  const int bits = std::bit_width(2 * merges.size() + 1);
  slots_.assign(size_t{1} << bits, Slot{kNoPair, kNoRule});
  shift_ = 64 - bits;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string &left = merges[rank].first, &right = merges[rank].second;
    const auto find = [&](const std::string& token) {
      const auto found = by_text.find(token);
      require(found != by_text.end(),
              "merge {} is of \"{}\" and \"{}\", and the vocabulary has no \"{}\"", rank, left,
              right, token);
      return found->second;
    };
    const int32_t first = find(left), second = find(right);
    const size_t prefix = std::min(options_.continuing_prefix.size(), right.size());
    add_rule(pair_of(first, second),
             {static_cast<int32_t>(rank), find(left + right.substr(prefix))});
  }
  if (!options_.has_byte_symbols) {
    ids_ = std::move(by_text);
  } else if (options_.ignores_merges) {
    for (const auto& [token, id] : by_text) {
      if (const auto bytes = bytes_of_symbols(token)) ids_[*bytes] = id;
    }
  }
}

void BytePairs::find_bytes(const TokenIds& by_text) {
  bool has_all = true;
  for (size_t place = 0; place < byte_ids_.size(); ++place) {
    const std::string prefix = (place & kContinues) != 0 ? options_.continuing_prefix : "";
    const std::string suffix = (place & kEndsWord) != 0 ? options_.end_suffix : "";
    for (size_t byte = 0; byte < byte_ids_[place].size(); ++byte) {
      const auto value = static_cast<uint8_t>(byte);
      const auto found =
          by_text.find(options_.has_byte_symbols ? prefix + byte_symbol(value) + suffix
                                                 : fmt::format("<0x{:02X}>", byte));
      byte_ids_[place][byte] = found == by_text.end() ? -1 : found->second;
      has_all = has_all && found != by_text.end();
    }
  }
  require(has_all || !options_.has_byte_symbols || !options_.has_byte_fallback,
          "`byte_fallback` is true after ByteLevel, and the vocabulary lacks symbols of bytes; "
          "onebit's tokenizer does not write the bytes of a byte's symbol");
}

size_t BytePairs::slot_of(uint64_t pair) const {
  size_t i = static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> shift_);
  while (slots_[i].pair != pair && slots_[i].pair != kNoPair) i = (i + 1) & (slots_.size() - 1);
  return i;
}

// If a pair is repeated, its last rule counts.
void BytePairs::add_rule(uint64_t pair, Rule rule) {
  slots_[slot_of(pair)] = {pair, rule};
}

BytePairs::Rule BytePairs::rule_of(int32_t left, int32_t right) const {
  return slots_[slot_of(pair_of(left, right))].rule;
}

std::optional<int32_t> BytePairs::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void BytePairs::add_symbols(std::string_view word, std::vector<Piece>& parts) const {
  const auto size = static_cast<uint32_t>(word.size());
  if (options_.has_byte_symbols) {
    bool is_behind_unknown = false;
    for (uint32_t at = 0; at < size; ++at) {
      const size_t place = (at > 0 ? kContinues : 0) | (at + 1 == size ? kEndsWord : 0);
      const int32_t id = byte_ids_[place][static_cast<uint8_t>(word[at])];
      if (id < 0 && !options_.unknown_id) continue;
      if (id < 0 && is_behind_unknown && options_.fuses_unknown) {
        parts.back().end = at + 1;
      } else {
        parts.push_back({id < 0 ? *options_.unknown_id : id, at, at + 1});
      }
      is_behind_unknown = id < 0;
    }
    return;
  }
  // The reference counts lengths, so a piece that is left out shifts the pieces behind it.
  uint32_t end = 0;
  uint32_t unknown_bytes = 0;
  const auto add = [&](int32_t id, uint32_t bytes) {
    parts.push_back({id, end, end + bytes});
    end += bytes;
  };
  const auto add_unknown = [&] {
    if (unknown_bytes > 0) add(*options_.unknown_id, unknown_bytes);
    unknown_bytes = 0;
  };
  for (uint32_t at = 0; at < size;) {
    const uint32_t bytes = decode_utf8(word.substr(at)).size_bytes;
    const std::string_view character = word.substr(at, bytes);
    std::string symbol = at > 0 ? options_.continuing_prefix : "";
    symbol += character;
    if (at + bytes == size) symbol += options_.end_suffix;
    at += bytes;
    if (const auto id = id_of(symbol)) {
      add_unknown();
      add(*id, bytes);
      continue;
    }
    const auto byte_id = [&](char byte) { return byte_ids_[0][static_cast<uint8_t>(byte)]; };
    if (options_.has_byte_fallback &&
        std::all_of(symbol.begin(), symbol.end(), [&](char byte) { return byte_id(byte) >= 0; })) {
      for (const char byte : symbol) add(byte_id(byte), 1);
    } else if (options_.unknown_id) {
      if (!options_.fuses_unknown) add_unknown();
      unknown_bytes += bytes;
    }
  }
  add_unknown();
}

void BytePairs::merge_few(std::vector<Piece>& parts) const {
  Rule rules[kMany];
  size_t count = parts.size();
  for (size_t i = 0; i + 1 < count; ++i) rules[i] = rule_of(parts[i].id, parts[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (rules[i].rank < rules[best].rank) best = i;
    }
    if (rules[best].rank == kNoRule.rank) break;
    parts[best] = {rules[best].id, parts[best].begin, parts[best + 1].end};
    for (size_t i = best + 1; i + 1 < count; ++i) {
      parts[i] = parts[i + 1];
      rules[i] = rules[i + 1];
    }
    --count;
    if (best > 0) rules[best - 1] = rule_of(parts[best - 1].id, parts[best].id);
    if (best + 1 < count) rules[best] = rule_of(parts[best].id, parts[best + 1].id);
  }
  parts.resize(count);
}

// The same with a queue of pairs, and a list of the symbols that are left.
void BytePairs::merge_many(std::vector<Piece>& parts) const {
  struct Links {
    size_t before, behind;
  };
  constexpr size_t kEnd = SIZE_MAX;
  std::vector<Links> links(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    links[i] = {i == 0 ? kEnd : i - 1, i + 1 == parts.size() ? kEnd : i + 1};
  }
  using Candidate = std::tuple<int32_t, size_t, int32_t>;  // rank, symbol, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t left) {
    if (left == kEnd || links[left].behind == kEnd) return;
    const Rule rule = rule_of(parts[left].id, parts[links[left].behind].id);
    if (rule.rank != kNoRule.rank) queue.emplace(rule.rank, left, rule.id);
  };
  for (size_t i = 0; i < parts.size(); ++i) offer(i);
  while (!queue.empty()) {
    const auto [rank, left, result] = queue.top();
    queue.pop();
    const size_t right = links[left].behind;
    // Either symbol may have been merged since.
    if (parts[left].id < 0 || right == kEnd) continue;
    if (rule_of(parts[left].id, parts[right].id).rank != rank) continue;
    parts[left] = {result, parts[left].begin, parts[right].end};
    parts[right].id = -1;
    links[left].behind = links[right].behind;
    if (links[right].behind != kEnd) links[links[right].behind].before = left;
    offer(links[left].before);
    offer(left);
  }
  std::erase_if(parts, [](const Piece& part) { return part.id < 0; });
}

void BytePairs::split(std::string_view word, std::vector<Piece>& parts) const {
  parts.clear();
  if (options_.ignores_merges) {
    if (const auto id = id_of(word)) {
      parts.push_back({*id, 0, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  add_symbols(word, parts);
  parts.size() <= kMany ? merge_few(parts) : merge_many(parts);
}

bool BytePairs::cuts_before(std::string_view character, const std::vector<Merge>& merges) const {
  const bool has_all_bytes =
      options_.has_byte_fallback &&
      std::none_of(byte_ids_[0].begin(), byte_ids_[0].end(), [](int32_t id) { return id < 0; });
  const bool fuses = options_.unknown_id && options_.fuses_unknown && !has_all_bytes;
  return !fuses && !options_.ignores_merges && options_.continuing_prefix.empty() &&
         options_.end_suffix.empty() &&
         std::none_of(merges.begin(), merges.end(), [&](const Merge& merge) {
           return merge.second.starts_with(character) && !merge.first.ends_with(character);
         });
}

// A token may both begin and continue a word: one that has the prefix can stand at the front of a
// word that has it.
WordPieces::WordPieces(const std::vector<std::string>& tokens, Options options)
    : trie_(2, 2 * bytes_of(tokens)), options_(std::move(options)) {
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (token.empty()) continue;
    trie_.insert(token, kWordRoot, static_cast<int32_t>(id));
    if (!token.starts_with(options_.prefix) || token.size() == options_.prefix.size()) continue;
    trie_.insert(token.substr(options_.prefix.size()), kContinuationRoot, static_cast<int32_t>(id));
  }
  trie_.shrink();
}

void WordPieces::split(std::string_view word, std::vector<Piece>& parts) const {
  parts.clear();
  const auto size = static_cast<uint32_t>(word.size());
  const auto characters = std::count_if(word.begin(), word.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  });
  const bool is_short = characters <= options_.most_characters;
  for (uint32_t begin = 0; is_short && begin < size;) {
    Piece best{-1, begin, begin};
    uint32_t node = begin == 0 ? kWordRoot : kContinuationRoot;
    for (uint32_t at = begin; at < size; ++at) {
      node = trie_.next(node, word[at]);
      if (node == PieceTrie::kNone) break;
      if (trie_.accepted(node) >= 0) best = {trie_.accepted(node), begin, at + 1};
    }
    if (best.id < 0) break;
    parts.push_back(best);
    begin = best.end;
  }
  if (parts.empty() || parts.back().end < size) parts.assign(1, {options_.unknown_id, 0, size});
}

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
