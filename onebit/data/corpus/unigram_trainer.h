// Learns the pieces of a unigram language model from counted words (Kudo, arXiv 1804.10959): begins
// with the substrings that repeat, fits their probabilities by expectation maximisation, and leaves
// out the pieces without which the text loses least, until as many as wanted are left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::corpus {

struct UnigramPiece {
  std::string text;
  double score = 0;  // natural logarithm of its probability

  bool operator==(const UnigramPiece&) const = default;
};

struct WeightedWord {
  std::string_view text;  // UTF-8
  uint64_t count = 0;
};

// Returns at most `most_pieces`, best first, and among them every character that occurs (of more
// than 1,000 the frequent ones that make up 99.95 % of the text). The result depends on the words
// and counts, not on their order or `threads`. `report` is called with the number of pieces after
// every round. Errors: no word, no room for the characters.
std::vector<UnigramPiece> train_unigram(std::vector<WeightedWord> words, size_t most_pieces,
                                        int threads,
                                        const std::function<void(size_t pieces)>& report);

}  // namespace onebit::corpus
