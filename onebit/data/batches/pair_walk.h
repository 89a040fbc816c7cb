// Cuts documents into sentence pairs (Devlin et al. 2019, section A.1, with the rules of the
// published create_pretraining_data). A document is processed in visits: a short one in a single
// visit, a long one in runs of about 32 sequences whose ends move with every epoch. This bounds the
// cost of finding a pair, and one random target length never governs a whole book. A sentence that
// is longer than a sequence counts as several (SentencePieces).
//
// With packing, a sample takes the next whole sentences, or pieces of long ones, as long as they
// fit. What is of one document is a sequence. Samples begin anew where a visit begins inside a
// document, and with a document in every 64 or so of them (begins_block), so that a sample is found
// without the ones before.
#pragma once

#include <compare>
#include <cstdint>

#include "onebit/data/batches/pair_options.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/philox.h"

namespace onebit::batches {

// Sentences that are longer than a sequence, in pieces that the walk over the text treats as
// sentences. Without them all but the middle of such a sentence would be truncated, in every epoch
// the same: most of a text without sentence ends (Thai, transcripts, logs) would never be read.
//
// A piece has about an eighth of a sequence, so that a chunk of pieces fills its sequence exactly,
// and the phase of the cuts is random in every epoch. The number of pieces and their places follow
// from the length alone. The tokens are read only where a sequence begins or ends, which moves back
// to the beginning of its word. A sentence that fits is one piece.

// The beginning of a piece of a sentence. Piece 0 begins with the sentence.
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
  // The most tokens by which word_begin() moves back.
  uint64_t most_moved(TextPlace place) const { return place.piece == 0 ? 0 : least_ - 1; }
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

struct PairWalkOptions {
  PairOptions pairs;
  uint64_t epoch_seed = 0;  // derived from (seed, epoch)
};

// Whether no sample contains text of `document` and of the document before it. Always true without
// packing.
bool begins_block(const corpus::TokenStore& store, const PairOptions& options, uint64_t document);

// A pair as ranges of sentences or pieces of them, before truncation.
struct Pair {
  uint64_t document;
  TextPlace a_begin, a_end;  // A
  TextPlace b_end;           // if B continues: [a_end, b_end), equal to a_end without a B
  bool could_continue;       // [a_begin, b_end) has two parts or more
  bool random_next;          // B is to be drawn from another document
  int64_t target;            // target number of tokens of A and B
};

// Iterates over the pairs of the store from the beginning of a visit.
class PairWalk {
 public:
  // `place` must be the first of a visit of `document`, and of a sample.
  PairWalk(const corpus::TokenStore& store, const PairWalkOptions& options, uint64_t document,
           TextPlace place);

  // Whether the next pair begins a visit.
  bool at_visit() const { return place_ == visit_end_; }
  // Whether the next pair begins a sample; with packing, others continue one.
  bool at_sample() const { return at_sample_; }
  uint64_t document() const { return document_; }
  TextPlace place() const { return place_; }
  // Whether all documents before `document_end` are done.
  bool done(uint64_t document_end) const { return document_ >= document_end; }
  Pair next();
  SentencePieces& pieces() { return pieces_; }
  const PairWalkOptions& options() const { return options_; }

 private:
  void begin_visit();
  TextPlace end_of_visit(uint64_t length);
  bool fits_next();

  const corpus::TokenStore& store_;
  const PairWalkOptions& options_;
  SentencePieces pieces_;
  uint64_t document_, document_end_;  // document_end_: its last sentence + 1
  TextPlace place_, visit_end_;
  int64_t target_ = 0;
  bool at_sample_ = true;
  int64_t room_ = 0;  // tokens left in the sample
  RandomSequence random_;
};

}  // namespace onebit::batches
