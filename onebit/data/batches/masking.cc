#include "onebit/data/batches/masking.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"

namespace onebit::batches {
namespace {

// Marks the tokens that can replace a word at random. In WordPiece these are all but [UNK] and
// other tokens in brackets ([PAD], [unused12]), which no text contains. Other tokenizers name their
// special tokens.
std::vector<bool> ordinary_tokens(const text::Vocabulary& vocabulary) {
  std::vector<bool> ordinary(static_cast<size_t>(vocabulary.size()), true);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.token(id);
    const bool in_brackets = token.size() > 2 && token.front() == '[' && token.back() == ']';
    if (vocabulary.pipeline() ? token.empty() : in_brackets) ordinary[id] = false;
  }
  if (!vocabulary.pipeline()) return ordinary;
  for (const text::AddedToken& token : vocabulary.added()) {
    if (token.special) ordinary[token.id] = false;
  }
  for (const int32_t id : {vocabulary.unknown_id(), vocabulary.cls_id(), vocabulary.sep_id(),
                           vocabulary.mask_id(), vocabulary.pad_id()}) {
    ordinary[id] = false;
  }
  return ordinary;
}

}  // namespace

int64_t prediction_count(int64_t length, double probability, int64_t max_predictions) {
  const auto share =
      static_cast<int64_t>(std::nearbyint(static_cast<double>(length) * probability));
  return std::min(max_predictions, std::max<int64_t>(1, share));
}

int64_t most_predictions(int64_t length, const MaskOptions& options) {
  return prediction_count(length, options.largest_probability(), options.max_predictions);
}

Masker::Masker(const text::Vocabulary& vocabulary, const MaskOptions& options)
    : options_(options),
      cls_id_(vocabulary.cls_id()),
      sep_id_(vocabulary.sep_id()),
      mask_id_(vocabulary.mask_id()) {
  check(options);
  require(!options.whole_words || vocabulary.shows_words(),
          "the vocabulary's tokens do not show where words begin (by ##, a mark of blanks or of a "
          "word's end), so no whole words can be masked; set data.whole_word_masking to false");
  continuation_.resize(vocabulary.size());
  ends_word_.resize(vocabulary.size());
  const std::vector<bool> ordinary = ordinary_tokens(vocabulary);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    continuation_[id] = vocabulary.is_continuation(id) ? 1 : 0;
    ends_word_[id] = vocabulary.ends_word(id) ? 1 : 0;
    if (ordinary[id]) ordinary_.push_back(id);
  }
  require(!ordinary_.empty(), "the vocabulary contains only special tokens: nothing can be masked");
}

void Masker::mask(RandomSequence& random, double probability, int64_t first_row,
                  Batch& batch) const {
  const size_t chosen_begin = batch.labelled_rows.size();
  const int64_t wanted =
      prediction_count(batch.rows() - first_row, probability, options_.max_predictions);
  if (options_.whole_words) {
    choose_words(random, wanted, first_row, batch);
  } else {
    choose_tokens(random, wanted, first_row, batch);
  }
  const auto begin = batch.labelled_rows.begin() + static_cast<ptrdiff_t>(chosen_begin);
  std::sort(begin, batch.labelled_rows.end());
  for (auto row = begin; row != batch.labelled_rows.end(); ++row) {
    int32_t& token = batch.tokens[static_cast<size_t>(*row)];
    batch.row_labels.push_back(token);
    token = replacement(random, token);
  }
}

int32_t Masker::replacement(RandomSequence& random, int32_t token) const {
  if (random.uniform() < 0.8) return mask_id_;
  if (random.next_u32() >> 31 != 0) return token;
  return ordinary_[random.below(static_cast<uint32_t>(ordinary_.size()))];
}

// The first steps of a Fisher-Yates shuffle of the candidates, which are at the end of
// labelled_rows. Candidates that were not chosen are removed afterwards.
void Masker::choose_tokens(RandomSequence& random, int64_t wanted, int64_t first_row,
                           Batch& batch) const {
  const size_t begin = batch.labelled_rows.size();
  for (int64_t row = first_row; row < batch.rows(); ++row) {
    if (is_candidate(batch.tokens[static_cast<size_t>(row)])) {
      batch.labelled_rows.push_back(static_cast<int32_t>(row));
    }
  }
  const size_t candidates = batch.labelled_rows.size() - begin;
  const size_t chosen = std::min(candidates, static_cast<size_t>(wanted));
  for (size_t step = 0; step < chosen; ++step) {
    const size_t other = step + random.below(static_cast<uint32_t>(candidates - step));
    std::swap(batch.labelled_rows[begin + step], batch.labelled_rows[begin + other]);
  }
  batch.labelled_rows.resize(begin + chosen);
}

// The same for words: their first rows are at the end of row_labels, as scratch. A word that
// would exceed the required number is skipped.
void Masker::choose_words(RandomSequence& random, int64_t wanted, int64_t first_row,
                          Batch& batch) const {
  std::vector<int32_t>& words = batch.row_labels;
  const size_t begin = words.size();
  for (int64_t row = first_row; row < batch.rows(); ++row) {
    if (is_candidate(batch.tokens[row]) && !continues_word(first_row, row, batch)) {
      words.push_back(static_cast<int32_t>(row));
    }
  }
  const size_t candidates = words.size() - begin;
  int64_t left = wanted;
  for (size_t step = 0; step < candidates && left > 0; ++step) {
    const size_t other = step + random.below(static_cast<uint32_t>(candidates - step));
    std::swap(words[begin + step], words[begin + other]);
    const int64_t first = words[begin + step];
    int64_t end = first + 1;
    while (end < batch.rows() && continues_word(first_row, end, batch)) ++end;
    if (end - first > left) continue;
    left -= end - first;
    for (int64_t row = first; row < end; ++row) {
      batch.labelled_rows.push_back(static_cast<int32_t>(row));
    }
  }
  words.resize(begin);
}

// A "##" piece belongs to the token before it, unless truncation has removed that token. A piece
// without "</w>" continues in the next one.
bool Masker::continues_word(int64_t first_row, int64_t row, const Batch& batch) const {
  const int32_t token = batch.tokens[row];
  if (row == first_row || continuation_[token] == 0) return false;
  const int32_t before = batch.tokens[row - 1];
  return is_candidate(before) && ends_word_[before] == 0;
}

}  // namespace onebit::batches
