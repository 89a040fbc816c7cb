#include "onebit/data/batches/sentence_pieces.h"

#include <algorithm>
#include <vector>

#include "onebit/data/batches/random_streams.h"

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
    if (!store_.vocabulary()->is_continuation(ids[at])) return first + at;
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

}  // namespace onebit::batches
