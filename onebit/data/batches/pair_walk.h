// Cuts documents into sentence pairs (Devlin et al. 2019, section A.1; the rules of the published
// create_pretraining_data). A document is processed in visits: a short one in a single visit, a
// long one in runs of about 32 sequences whose ends move with every epoch. This bounds the cost of
// finding a pair, and one random target length never governs a whole book. A sentence that is
// longer than a sequence counts as several (sentence_pieces.h).
#pragma once

#include <cstdint>

#include "onebit/data/batches/pair_options.h"
#include "onebit/data/batches/sentence_pieces.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/philox.h"

namespace onebit::batches {

struct PairWalkOptions {
  PairOptions pairs;
  uint64_t epoch_seed = 0;  // derived from (seed, epoch)
};

// A pair as ranges of sentences or pieces of them, before truncation.
struct Pair {
  uint64_t document;
  TextPlace a_begin, a_end;  // A
  TextPlace b_end;           // if B continues: [a_end, b_end); equal to a_end without a B
  bool could_continue;       // [a_begin, b_end) has two parts or more
  bool random_next;          // B is to be drawn from another document
  int64_t target;            // target number of tokens of A and B
};

// Iterates over the pairs of the store from the beginning of a visit.
class PairWalk {
 public:
  // `place` must be the first of a visit of `document`.
  PairWalk(const corpus::TokenStore& store, const PairWalkOptions& options, uint64_t document,
           TextPlace place);

  // Whether the next pair begins a visit.
  bool at_visit() const { return place_ == visit_end_; }
  uint64_t document() const { return document_; }
  TextPlace place() const { return place_; }
  // Whether all documents before `document_end` are done.
  bool done(uint64_t document_end) const { return document_ >= document_end; }
  Pair next();
  SentencePieces& pieces() { return pieces_; }

 private:
  void begin_visit();
  TextPlace end_of_visit(uint64_t length);

  const corpus::TokenStore& store_;
  const PairWalkOptions& options_;
  SentencePieces pieces_;
  uint64_t document_, document_end_;  // document_end_: its last sentence + 1
  TextPlace place_, visit_end_;
  int64_t target_ = 0;
  RandomSequence random_;
};

}  // namespace onebit::batches
