// Byte-pair encoding of words (Sennrich, Haddow and Birch 2016): of the pairs of adjacent symbols,
// the one that was learnt first is merged, until none is left. Equal to Hugging Face's `tokenizers`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/data/text/piece.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

class BytePairs {
 public:
  struct Options {
    // A word is bytes, which the vocabulary writes as byte_symbol().
    bool has_byte_symbols = false;
    std::optional<int32_t> unknown_id = {};
    bool fuses_unknown = false;
    bool has_byte_fallback = false;
    // A word that is a token is this token, whatever the merges say.
    bool ignores_merges = false;
    // Written before a symbol that continues a word, and behind the last one.
    std::string continuing_prefix = {}, end_suffix = {};
  };
  using Merge = std::pair<std::string, std::string>;

  // Tokens by id, merges in the order of learning. Error, without a place: a merge of a symbol
  // that the vocabulary lacks, or whose result it lacks.
  BytePairs(const std::vector<std::string>& tokens, const std::vector<Merge>& merges,
            Options options);

  // Overwrites `parts`. A symbol that the vocabulary lacks is left out if there is no unknown id.
  void split(std::string_view word, std::vector<Piece>& parts) const;

  // Whether words can be cut before each `character` that has another one before it, without a
  // difference: no merge and no unknown piece joins the two.
  bool cuts_before(std::string_view character, const std::vector<Merge>& merges) const;

 private:
  struct Rule {
    int32_t rank, id;
  };
  // An open-addressing table from pairs of ids to rules.
  struct Slot {
    uint64_t pair;
    Rule rule;
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static constexpr Rule kNoRule = {INT32_MAX, -1};

  void add_rule(uint64_t pair, Rule rule);
  size_t slot_of(uint64_t pair) const;
  Rule rule_of(int32_t left, int32_t right) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  void add_symbols(std::string_view word, std::vector<Piece>& parts) const;
  void merge_few(std::vector<Piece>& parts) const;
  void merge_many(std::vector<Piece>& parts) const;

  Options options_;
  TokenIds ids_;  // by text, or by bytes if the vocabulary writes bytes
  ByteIds byte_ids_;
  std::vector<Slot> slots_;
  int shift_ = 0;
};

}  // namespace onebit::text
