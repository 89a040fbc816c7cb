// Models that split words into pieces, equal to Hugging Face's `tokenizers`: byte-pair encoding
// (Sennrich, Haddow and Birch 2016), the unigram language model (Kudo 2018), and WordPiece for
// words of other rules than BERT's, which have a faster way (word_piece.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/data/text/pieces.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

// Of the pairs of adjacent symbols, the one that was learnt first is merged, until none is left.
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

  // Places of a byte in its word, which make its symbol another one.
  static constexpr size_t kContinues = 1, kEndsWord = 2;

  void find_bytes(const TokenIds& by_text);
  void add_rule(uint64_t pair, Rule rule);
  size_t slot_of(uint64_t pair) const;
  Rule rule_of(int32_t left, int32_t right) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  void add_symbols(std::string_view word, std::vector<Piece>& parts) const;
  void merge_few(std::vector<Piece>& parts) const;
  void merge_many(std::vector<Piece>& parts) const;

  Options options_;
  TokenIds ids_;                     // by text, or by bytes if the vocabulary writes bytes
  std::array<ByteIds, 4> byte_ids_;  // by place
  std::vector<Slot> slots_;
  int shift_ = 0;
};

// The longest token at the front of a word, then the longest ones that continue it.
class WordPieces {
 public:
  struct Options {
    std::string prefix = "##";  // of tokens that continue a word
    int64_t most_characters = 100;
    int32_t unknown_id = 0;
  };

  WordPieces(const std::vector<std::string>& tokens, Options options);

  // Overwrites `parts`. A word that is too long, or that no tokens make up, is unknown.
  void split(std::string_view word, std::vector<Piece>& parts) const;

 private:
  static constexpr uint32_t kWordRoot = 0, kContinuationRoot = 1;

  PieceTrie trie_;
  Options options_;
};

// A word is split into the pieces with the largest sum of scores.
class Unigram {
 public:
  struct Options {
    int32_t unknown_id = 0;
    bool has_byte_fallback = false;
  };

  // Pieces by id, and their scores (natural logarithms of probabilities).
  Unigram(const std::vector<std::string>& pieces, std::vector<double> scores, Options options);

  // Overwrites `parts`. A character that no piece has is unknown, and neighbours are one unknown
  // piece, or one piece a byte if the vocabulary has a piece for each of the bytes.
  void split(std::string_view word, std::vector<Piece>& parts) const;

 private:
  struct Node {
    double score;
    uint32_t begin;
    int32_t id;  // -1: not reached
  };
  void find_best(std::string_view word, std::vector<Node>& nodes) const;
  void add_unknown(std::string_view word, uint32_t begin, uint32_t end,
                   std::vector<Piece>& parts) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  Options options_;
  double unknown_score_;
  ByteIds byte_ids_;
};

}  // namespace onebit::text
