#include "onebit/data/batches/example_builder.h"

#include <algorithm>
#include <bit>

#include "onebit/ground/base/error.h"

namespace onebit::batches {
namespace {

// Unbiased below any bound. Draws only 32 bits if they suffice.
uint64_t below(RandomSequence& random, uint64_t bound) {
  if (bound <= UINT32_MAX) return random.below(static_cast<uint32_t>(bound));
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    const uint64_t high = random.next_u32();
    const uint64_t value = high << 32 | random.next_u32();
    if (value < limit) return value % bound;
  }
}

// The number of heads in `coins` fair coin tosses.
uint64_t heads(RandomSequence& random, uint64_t coins) {
  uint64_t count = 0;
  for (; coins >= 32; coins -= 32) count += static_cast<uint64_t>(std::popcount(random.next_u32()));
  if (coins > 0) count += static_cast<uint64_t>(std::popcount(random.next_u32() >> (32 - coins)));
  return count;
}

void drop(RandomSequence& random, int64_t count, TokenRange& range) {
  const uint64_t front = heads(random, static_cast<uint64_t>(count));
  range.begin += front;
  range.end -= static_cast<uint64_t>(count) - front;
}

TokenRange random_next(const corpus::TokenStore& store, SentencePieces& pieces, const Pair& pair,
                       int64_t wanted, RandomSequence& random) {
  uint64_t document = 0;
  if (store.documents() > 1) {
    document = below(random, store.documents() - 1);
    document += document >= pair.document;
  }
  const uint64_t first = store.document_begin(document);
  const TextPlace last{store.document_begin(document + 1)};
  TextPlace begin{first + below(random, last.sentence - first)};
  if (pieces.is_cut(begin.sentence)) begin.piece = below(random, pieces.count(begin.sentence));
  TextPlace end = pieces.after(begin);
  const uint64_t token = pieces.token(begin);
  while (end < last && static_cast<int64_t>(pieces.token(end) - token) < wanted) {
    end = pieces.after(end);
  }
  return {pieces.word_begin(begin), pieces.word_begin(end)};
}

void append_special(int32_t id, int32_t segment, Batch& batch) {
  batch.tokens.push_back(id);
  batch.segments.push_back(segment);
}

void append_range(const corpus::TokenStore& store, const TokenRange& range, int32_t segment,
                  Batch& batch) {
  const size_t used = batch.tokens.size();
  const auto count = static_cast<size_t>(range.size());
  batch.tokens.resize(used + count);
  store.copy_tokens(range.begin, count, batch.tokens.data() + used);
  batch.segments.resize(used + count, segment);
}

}  // namespace

Dropped dropped_tokens(int64_t longest, const TokenRange& a, const TokenRange& b) {
  int64_t excess = a.size() + b.size() - longest;
  if (excess <= 0) return {};
  const int64_t from_a = std::clamp<int64_t>(a.size() - b.size(), 0, excess);
  const int64_t from_b = std::clamp<int64_t>(b.size() - a.size(), 0, excess);
  excess -= from_a + from_b;
  // From here on both have equal length and lose tokens alternately, B first.
  return {from_a + excess / 2, from_b + (excess + 1) / 2};
}

void truncate_pair(RandomSequence& random, int64_t longest, TokenRange& a, TokenRange& b) {
  const Dropped dropped = dropped_tokens(longest, a, b);
  drop(random, dropped.from_a, a);
  drop(random, dropped.from_b, b);
}

void append_pair(const corpus::TokenStore& store, const Pair& pair, const PairWalkOptions& walk,
                 uint64_t sample, RandomSequence& random, Batch& batch) {
  const PairOptions& options = walk.pairs;
  SentencePieces pieces(store, options.most_text_tokens(), walk.epoch_seed);
  TokenRange a{pieces.word_begin(pair.a_begin), pieces.word_begin(pair.a_end)};
  TokenRange b{a.end, pieces.word_begin(pair.b_end)};
  if (pair.random_next) b = random_next(store, pieces, pair, pair.target - a.size(), random);
  truncate_pair(random, options.most_text_tokens(), a, b);
  ONEBIT_INVARIANT(a.size() >= 1 && (b.size() >= 1 || !options.next_sentence));

  const text::Vocabulary& vocabulary = *store.vocabulary();
  const int64_t first_row = batch.rows();
  append_special(vocabulary.cls_id(), 0, batch);
  append_range(store, a, 0, batch);
  append_special(vocabulary.sep_id(), 0, batch);
  if (options.next_sentence) {
    const text::PairTemplate& form = options.form;
    for (int i = 1; i < form.separators; ++i) append_special(vocabulary.sep_id(), 0, batch);
    append_range(store, b, form.second_segment, batch);
    append_special(vocabulary.sep_id(), form.second_segment, batch);
  }
  batch.end_sequence(first_row, sample);
  batch.sequence_labels.push_back(!options.next_sentence ? -1 : pair.random_next ? 1 : 0);
}

}  // namespace onebit::batches
