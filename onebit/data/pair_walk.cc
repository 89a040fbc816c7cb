#include "onebit/data/pair_walk.h"

#include <algorithm>

#include "onebit/data/random_streams.h"

namespace onebit::data {
namespace {

constexpr int64_t kVisitSequences = 32;

}  // namespace

PairWalk::PairWalk(const corpus::TokenStore& store, const PairWalkOptions& options,
                   uint64_t document, uint64_t sentence)
    : store_(store),
      options_(options),
      document_(document),
      document_end_(store.document_begin(document + 1)),
      sentence_(sentence),
      visit_end_(sentence),
      random_(0, 0, 0) {}

void PairWalk::begin_visit() {
  random_ = random_sequence(options_.epoch_seed, RandomStream::kVisit, sentence_);
  const int64_t longest = options_.pairs.most_text_tokens();
  target_ = longest;
  if (random_.uniform() < options_.pairs.short_sequence_probability) {
    target_ = 2 + static_cast<int64_t>(random_.below(static_cast<uint32_t>(longest - 1)));
  }
  const auto full = static_cast<uint64_t>(kVisitSequences * options_.pairs.sequence_length);
  // The first visit of a document has a random length, which shifts the ends of all later ones.
  const bool opens_document = sentence_ == store_.document_begin(document_);
  const uint64_t phase = random_.below(static_cast<uint32_t>(full));
  const uint64_t length = opens_document ? full / 2 + phase : full;
  const uint64_t begin = store_.sentence_begin(sentence_);
  visit_end_ = document_end_;
  if (store_.sentence_begin(document_end_) - begin <= length + full / 2) return;
  const auto offsets = store_.sentence_offsets();
  const auto first = offsets.begin() + static_cast<ptrdiff_t>(sentence_ + 1);
  const auto last = offsets.begin() + static_cast<ptrdiff_t>(document_end_);
  visit_end_ =
      static_cast<uint64_t>(std::lower_bound(first, last, begin + length) - offsets.begin());
}

Pair PairWalk::next() {
  if (at_visit()) begin_visit();
  const uint64_t begin = store_.sentence_begin(sentence_);
  uint64_t end = sentence_ + 1;
  while (end < visit_end_ && store_.sentence_begin(end) - begin < static_cast<uint64_t>(target_)) {
    ++end;
  }
  Pair pair{.document = document_,
            .a_begin = sentence_,
            .a_end = sentence_ + 1,
            .b_end = end,
            .random_next = true,
            .target = target_};
  const uint64_t chunk = end - sentence_;
  if (!options_.pairs.next_sentence) {
    pair.a_end = end;
    pair.random_next = false;
  } else if (chunk > 1) {
    pair.a_end += random_.below(static_cast<uint32_t>(chunk - 1));
    pair.random_next = random_.next_u32() >> 31 != 0;
  }
  // With a random B, the rest of the chunk is left for the next pair.
  sentence_ = pair.random_next ? pair.a_end : end;
  if (sentence_ == document_end_ && ++document_ < store_.documents()) {
    document_end_ = store_.document_begin(document_ + 1);
    visit_end_ = sentence_;
  }
  return pair;
}

}  // namespace onebit::data
