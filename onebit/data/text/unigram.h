// The unigram language model (Kudo 2018): a word is split into the pieces with the largest sum of
// scores. Equal to Hugging Face's `tokenizers`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/piece.h"
#include "onebit/data/text/piece_trie.h"

namespace onebit::text {

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
