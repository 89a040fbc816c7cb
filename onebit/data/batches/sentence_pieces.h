// Sentences that are longer than a sequence, in pieces that the walk over the text treats as
// sentences. Without them all but the middle of such a sentence would be truncated, in every epoch
// the same: most of a text without sentence ends (Thai, transcripts, logs) would never be read.
//
// A piece has about an eighth of a sequence, so that a chunk of pieces fills its sequence exactly,
// and the phase of the cuts is random in every epoch. The number of pieces and their places follow
// from the length alone; the tokens are read only where a sequence begins or ends, which moves back
// to the beginning of its word. A sentence that fits is one piece.
#pragma once

#include <compare>
#include <cstdint>

#include "onebit/data/corpus/token_store.h"

namespace onebit::batches {

// The beginning of a piece of a sentence; piece 0 begins with the sentence.
struct TextPlace {
  uint64_t sentence = 0, piece = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of <=> for a pointer
  auto operator<=>(const TextPlace&) const = default;
};

// Not thread-safe: it remembers the sentence that was asked for last.
class SentencePieces {
 public:
  // A sentence of more than `longest` tokens is cut. The store must outlive the object.
  SentencePieces(const corpus::TokenStore& store, int64_t longest, uint64_t epoch_seed);

  bool is_cut(uint64_t sentence) const { return size(sentence) > longest_; }
  // The number of pieces of a sentence, at least 1.
  uint64_t count(uint64_t sentence);
  // The beginning of the next piece or sentence.
  TextPlace after(TextPlace place);
  // The first token of the piece, possibly inside a word.
  uint64_t token(TextPlace place);
  // The same at the beginning of a word, unless the word is longer than half a piece.
  uint64_t word_begin(TextPlace place);
  // The first place at or behind `token`, a token of `sentence` or the first one behind it.
  TextPlace first_from(uint64_t token, uint64_t sentence);

 private:
  uint64_t size(uint64_t sentence) const {
    return store_.sentence_begin(sentence + 1) - store_.sentence_begin(sentence);
  }
  // The tokens of the first piece of a sentence that is cut.
  uint64_t phase(uint64_t sentence);

  const corpus::TokenStore& store_;
  uint64_t longest_, pieces_;  // pieces_: in a sequence
  uint64_t least_;             // tokens of a piece
  uint64_t epoch_seed_;
  uint64_t known_sentence_ = UINT64_MAX, known_phase_ = 0;
};

}  // namespace onebit::batches
