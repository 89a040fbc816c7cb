// What an epoch of a store reads and what its next-sentence labels are worth.
#pragma once

#include <cstdint>

namespace onebit::batches {

struct EpochFigures {
  uint64_t examples = 0;
  // With next_sentence: the examples whose text has room for a continuation, and those that got it
  // (label 0). The others have a random second text (label 1).
  uint64_t could_continue = 0, continue_text = 0;
  uint64_t parts = 0;       // sentences, and pieces of sentences that are longer than a sequence
  uint64_t tokens = 0;      // of the store
  uint64_t cut_tokens = 0;  // in sentences that are longer than a sequence
  // Tokens that some example contains, other than in a random second text. With next_sentence an
  // estimate: a random text is taken to be as long as the one that it replaces.
  uint64_t read_tokens = 0;

  void add(const EpochFigures& other) {
    examples += other.examples;
    could_continue += other.could_continue;
    continue_text += other.continue_text;
    parts += other.parts;
    tokens += other.tokens;
    cut_tokens += other.cut_tokens;
    read_tokens += other.read_tokens;
  }
  double read_share() const {
    return tokens == 0 ? 1 : static_cast<double>(read_tokens) / static_cast<double>(tokens);
  }
};

}  // namespace onebit::batches
