#include "onebit/data/batches/pair_walk.h"

#include <algorithm>
#include <vector>

#include "onebit/data/batches/permutation.h"

namespace onebit::batches {

namespace {

constexpr uint64_t kPieces = 8, kFewPieces = 2;
constexpr uint64_t kLeastForPieces = 32;  // below, eighths would be words

uint64_t divided_up(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

SentencePieces::SentencePieces(const corpus::TokenStore& store, int64_t longest,
                               uint64_t epoch_seed)
    : store_(store),
      longest_(static_cast<uint64_t>(longest)),
      pieces_(longest_ >= kLeastForPieces ? kPieces : kFewPieces),
      least_(longest_ / (2 * pieces_)),
      epoch_seed_(epoch_seed) {}

uint64_t SentencePieces::phase(uint64_t sentence) {
  if (sentence != known_sentence_) {
    RandomSequence random = random_sequence(epoch_seed_, RandomStream::kPieces, sentence);
    known_phase_ = least_ + random.below(static_cast<uint32_t>(divided_up(longest_, pieces_)));
    known_sentence_ = sentence;
  }
  return known_phase_;
}

// Piece j > 0 begins at phase + floor((j - 1) * longest / pieces), and the last one has at least
// least_ tokens.
uint64_t SentencePieces::count(uint64_t sentence) {
  if (!is_cut(sentence)) return 1;
  const uint64_t rest = size(sentence) - least_ - phase(sentence);
  return 1 + divided_up((rest + 1) * pieces_, longest_);
}

TextPlace SentencePieces::after(TextPlace place) {
  if (is_cut(place.sentence) && place.piece + 1 < count(place.sentence)) {
    return {place.sentence, place.piece + 1};
  }
  return {place.sentence + 1, 0};
}

uint64_t SentencePieces::token(TextPlace place) {
  const uint64_t begin = store_.sentence_begin(place.sentence);
  if (place.piece == 0) return begin;
  return begin + phase(place.sentence) + (place.piece - 1) * longest_ / pieces_;
}

uint64_t SentencePieces::word_begin(TextPlace place) {
  const uint64_t last = token(place);
  if (place.piece == 0) return last;
  // Moved by less than the shortest piece, so that no piece becomes empty.
  const uint64_t first = last - (least_ - 1);
  std::vector<int32_t> ids(last - first + 1);
  store_.copy_tokens(first, ids.size(), ids.data());
  for (uint64_t at = ids.size(); at-- > 0;) {
    const bool continues = store_.vocabulary()->is_continuation(ids[at]);
    const bool is_after_end = at > 0 && store_.vocabulary()->ends_word(ids[at - 1]);
    if (!continues || is_after_end) return first + at;
  }
  return last;
}

TextPlace SentencePieces::first_from(uint64_t token, uint64_t sentence) {
  const uint64_t begin = store_.sentence_begin(sentence);
  if (token <= begin) return {sentence, 0};
  if (!is_cut(sentence)) return {sentence + 1, 0};
  const uint64_t offset = token - begin, first = phase(sentence);
  const uint64_t piece = offset <= first ? 1 : 1 + divided_up((offset - first) * pieces_, longest_);
  if (piece >= count(sentence)) return {sentence + 1, 0};
  return {sentence, piece};
}

namespace {

constexpr int64_t kVisitSequences = 32, kBlockSequences = 64;
constexpr int64_t kSpecials = 2;  // of a packed sequence

}  // namespace

bool begins_block(const corpus::TokenStore& store, const PairOptions& options, uint64_t document) {
  if (!options.packing || document == 0 || document >= store.documents()) return true;
  const auto block_of = [&](uint64_t which) {
    return store.sentence_begin(store.document_begin(which)) /
           static_cast<uint64_t>(kBlockSequences * options.sequence_length);
  };
  return block_of(document) != block_of(document - 1);
}

PairWalk::PairWalk(const corpus::TokenStore& store, const PairWalkOptions& options,
                   uint64_t document, TextPlace place)
    : store_(store),
      options_(options),
      pieces_(store, options.pairs.most_text_tokens(), options.epoch_seed),
      document_(document),
      document_end_(store.document_begin(document + 1)),
      place_(place),
      visit_end_(place),
      random_(0, 0, 0) {}

void PairWalk::begin_visit() {
  random_ =
      place_.piece == 0
          ? random_sequence(options_.epoch_seed, RandomStream::kVisit, place_.sentence)
          : random_sequence(options_.epoch_seed, RandomStream::kVisitInside, pieces_.token(place_));
  const int64_t longest = options_.pairs.most_text_tokens();
  target_ = longest;
  if (random_.uniform() < options_.pairs.short_sequence_probability) {
    target_ = 2 + static_cast<int64_t>(random_.below(static_cast<uint32_t>(longest - 1)));
  }
  const auto full = static_cast<uint64_t>(kVisitSequences * options_.pairs.sequence_length);
  // The first visit of a document has a random length, which shifts the ends of all later ones.
  const bool opens_document = place_ == TextPlace{store_.document_begin(document_)};
  const uint64_t phase = random_.below(static_cast<uint32_t>(full));
  visit_end_ = end_of_visit(opens_document ? full / 2 + phase : full);
}

// The first place at least `length` tokens behind the current one. A document is not left with a
// rest of less than half a visit.
TextPlace PairWalk::end_of_visit(uint64_t length) {
  const auto full = static_cast<uint64_t>(kVisitSequences * options_.pairs.sequence_length);
  const uint64_t begin = pieces_.token(place_);
  if (store_.sentence_begin(document_end_) - begin <= length + full / 2) return {document_end_, 0};
  const auto offsets = store_.sentence_offsets();
  const auto first = offsets.begin() + static_cast<ptrdiff_t>(place_.sentence + 1);
  const auto last = offsets.begin() + static_cast<ptrdiff_t>(document_end_);
  const auto next =
      static_cast<uint64_t>(std::lower_bound(first, last, begin + length) - offsets.begin());
  return pieces_.first_from(begin + length, next - 1);
}

// Whether the sample has room for the next sentence or piece, which is of the same visit or begins
// a document.
bool PairWalk::fits_next() {
  const uint64_t size = pieces_.token(pieces_.after(place_)) - pieces_.token(place_);
  return static_cast<int64_t>(size) + kSpecials <= room_;
}

Pair PairWalk::next() {
  if (at_visit()) begin_visit();
  const PairOptions& pairs = options_.pairs;
  if (at_sample_) room_ = pairs.sequence_length;
  const uint64_t begin = pieces_.token(place_);
  const auto most = static_cast<uint64_t>(room_ - kSpecials);
  TextPlace end = pieces_.after(place_);
  uint64_t chunk = 1;  // sentences and pieces
  while (end < visit_end_ && pieces_.token(end) - begin < static_cast<uint64_t>(target_)) {
    const TextPlace longer = pieces_.after(end);
    if (pairs.packing && pieces_.token(longer) - begin > most) break;
    end = longer;
    ++chunk;
  }
  if (pairs.packing) {
    const uint64_t tokens = pieces_.token(end) - begin + pieces_.most_moved(place_);
    room_ -= kSpecials + static_cast<int64_t>(std::min(tokens, most));
  }
  Pair pair{.document = document_,
            .a_begin = place_,
            .a_end = pieces_.after(place_),
            .b_end = end,
            .could_continue = chunk > 1,
            .random_next = true,
            .target = target_};
  if (!pairs.next_sentence) {
    pair.a_end = end;
    pair.random_next = false;
  } else if (chunk > 1) {
    const uint64_t more = random_.below(static_cast<uint32_t>(chunk - 1));
    for (uint64_t i = 0; i < more; ++i) pair.a_end = pieces_.after(pair.a_end);
    pair.random_next = random_.next_u32() >> 31 != 0;
  }
  // With a random B, the rest of the chunk is left for the next pair.
  place_ = pair.random_next ? pair.a_end : end;
  at_sample_ = at_visit();
  if (place_ == TextPlace{document_end_}) {
    at_sample_ = begins_block(store_, pairs, ++document_);
    if (document_ < store_.documents()) {
      document_end_ = store_.document_begin(document_ + 1);
      visit_end_ = place_;
    }
  }
  at_sample_ = at_sample_ || !pairs.packing || !fits_next();
  return pair;
}

}  // namespace onebit::batches
