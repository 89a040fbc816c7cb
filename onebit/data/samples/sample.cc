#include "onebit/data/samples/sample.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::samples {

namespace {

// [MASK] replaces 80 % of masked words: with this many, a share below 50 % is never chance.
constexpr uint64_t kEnoughMasked = 200;
constexpr double kMinMaskShare = 0.5;

void require_same_size(const PaddedSample& sample, const char* name, size_t size,
                       const char* other_name, size_t other_size) {
  require(size == other_size, "{}: {} has {} numbers, but {} has {}", sample.place, name, size,
          other_name, other_size);
}

}  // namespace

SampleChecker::SampleChecker(const text::Vocabulary& vocabulary, std::string vocabulary_place)
    : vocabulary_(vocabulary), vocabulary_place_(std::move(vocabulary_place)) {}

int64_t SampleChecker::length_of(const PaddedSample& padded) const {
  const auto& mask = padded.input_mask;
  if (mask.empty()) {
    const auto last = std::find_if(padded.input_ids.rbegin(), padded.input_ids.rend(),
                                   [&](int64_t id) { return id != vocabulary_.pad_id(); });
    return std::distance(last, padded.input_ids.rend());
  }
  require_same_size(padded, "input_mask", mask.size(), "input_ids", padded.input_ids.size());
  const auto end = std::find_if(mask.begin(), mask.end(), [](int64_t value) { return value != 1; });
  const auto other = std::find_if(end, mask.end(), [](int64_t value) { return value != 0; });
  require(other == mask.end(), "{}: input_mask has {} at position {}, {}", padded.place,
          other == mask.end() ? 0 : *other, std::distance(mask.begin(), other),
          other != mask.end() && *other != 1 ? "and it must have only 1 (a token) and 0 (padding)"
                                             : "after a 0: padding is allowed only at the end");
  return std::distance(mask.begin(), end);
}

void SampleChecker::take_tokens(const PaddedSample& padded, int64_t length, Sample& sample) const {
  require(length >= 3 && length <= kMaxTokens, "{}: has {} tokens, expected 3 to {}", padded.place,
          length, kMaxTokens);
  sample.tokens.clear();
  for (int64_t position = 0; position < length; ++position) {
    const int64_t id = padded.input_ids[position];
    require(id >= 0 && id < vocabulary_.size(),
            "{}: input_ids has {} at position {}, which is not an id of the {} tokens of {}: pass "
            "the file's vocabulary with --vocab",
            padded.place, id, position, vocabulary_.size(), vocabulary_place_);
    sample.tokens.push_back(static_cast<int32_t>(id));
  }
  const auto require_special = [&](int32_t found, int32_t expected, const char* where) {
    require(found == expected,
            "{}: {} with id {} ({}), but {} of {} has {}: pass the file's vocabulary with --vocab",
            padded.place, where, found, vocabulary_.token(found), vocabulary_.token(expected),
            vocabulary_place_, expected);
  };
  require_special(sample.tokens.front(), vocabulary_.cls_id(), "begins");
  require_special(sample.tokens.back(), vocabulary_.sep_id(), "ends");
}

void SampleChecker::take_segments(const PaddedSample& padded, Sample& sample) const {
  require_same_size(padded, "segment_ids", padded.segment_ids.size(), "input_ids",
                    padded.input_ids.size());
  const auto begin = padded.segment_ids.begin();
  const auto end = begin + static_cast<ptrdiff_t>(sample.tokens.size());
  const auto second = std::find_if(begin, end, [](int64_t value) { return value != 0; });
  const auto other = std::find_if(second, end, [](int64_t value) { return value != 1; });
  require(other == end,
          "{}: segment_ids has {} at position {}: expected zeros and then ones, up to the padding",
          padded.place, other == end ? 0 : *other, std::distance(begin, other));
  require(second != begin, "{}: segment_ids begins with 1: [CLS] and the first text have 0",
          padded.place);
  sample.first_part = static_cast<int32_t>(std::distance(begin, second));
  const int32_t last = sample.tokens[static_cast<size_t>(sample.first_part) - 1];
  require(last == vocabulary_.sep_id(),
          "{}: its first text ends with id {} at position {} (segment_ids), expected [SEP]",
          padded.place, last, sample.first_part - 1);
}

void SampleChecker::take_masked(const PaddedSample& padded, Sample& sample) {
  const auto& positions = padded.masked_lm_positions;
  const auto& weights = padded.masked_lm_weights;
  require_same_size(padded, "masked_lm_ids", padded.masked_lm_ids.size(), "masked_lm_positions",
                    positions.size());
  if (!weights.empty()) {
    require_same_size(padded, "masked_lm_weights", weights.size(), "masked_lm_positions",
                      positions.size());
  }
  scratch_.clear();
  bool padding = false;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (weights.empty()) {
      padding = padding || positions[i] == 0;
    } else {
      require(weights[i] == 0 || weights[i] == 1,
              "{}: masked_lm_weights has {} at {}: weights other than 0 and 1 are not supported",
              padded.place, weights[i], i);
      padding = weights[i] == 0;
    }
    if (padding) {
      require(!weights.empty() || positions[i] == 0,
              "{}: masked_lm_positions has {} at {}, after the 0 that ends the list", padded.place,
              positions[i], i);
      continue;
    }
    const auto length = static_cast<int64_t>(sample.tokens.size());
    require(positions[i] > 0 && positions[i] < length - 1,
            "{}: masked_lm_positions has {} at {}: for {} tokens, valid positions are 1 to {}",
            padded.place, positions[i], i, length, length - 2);
    const int64_t id = padded.masked_lm_ids[i];
    require(id >= 0 && id < vocabulary_.size(),
            "{}: masked_lm_ids has {} at {}, which is not an id of the {} tokens of {}: pass the "
            "file's vocabulary with --vocab",
            padded.place, id, i, vocabulary_.size(), vocabulary_place_);
    require(id != vocabulary_.pad_id(),
            "{}: masked_lm_ids has [PAD], id {} of {}, at {}: no word is [PAD], so the file is "
            "damaged or was written with another vocabulary",
            padded.place, id, vocabulary_place_, i);
    scratch_.emplace_back(static_cast<int32_t>(positions[i]), static_cast<int32_t>(id));
  }
  std::sort(scratch_.begin(), scratch_.end());
  sample.masked_positions.clear();
  sample.masked_ids.clear();
  for (const auto& [position, id] : scratch_) {
    require(sample.masked_positions.empty() || sample.masked_positions.back() != position,
            "{}: masked_lm_positions has {} twice", padded.place, position);
    sample.masked_positions.push_back(position);
    sample.masked_ids.push_back(id);
    if (sample.tokens[position] == vocabulary_.mask_id()) ++mask_tokens_;
  }
  masked_ += scratch_.size();
}

bool SampleChecker::take(const PaddedSample& padded, Sample& sample) {
  take_tokens(padded, length_of(padded), sample);
  take_segments(padded, sample);
  take_masked(padded, sample);
  const int64_t label = padded.next_sentence.value_or(kNoLabel);
  require(!padded.next_sentence || label == 0 || label == 1,
          "{}: next_sentence_labels is {}, expected 0 (the second text follows the first) or 1 (it "
          "is a random one)",
          padded.place, label);
  sample.next_sentence = static_cast<int32_t>(label);
  // Google's script leaves a sequence unmasked where each whole word has more pieces than may be
  // masked.
  if (!sample.masked_positions.empty()) return true;
  if (without_masks_++ == 0) first_without_masks_ = padded.place;
  return false;
}

void SampleChecker::finish() const {
  const double share =
      static_cast<double>(mask_tokens_) / static_cast<double>(std::max<uint64_t>(1, masked_));
  require(masked_ < kEnoughMasked || share >= kMinMaskShare,
          "of {} masked words, {:.1f} % were replaced by [MASK], id {} of {} (80 % is usual): pass "
          "the files' vocabulary with --vocab",
          masked_, 100 * share, vocabulary_.mask_id(), vocabulary_place_);
}

void PaddedSample::clear() {
  for (auto* numbers :
       {&input_ids, &segment_ids, &input_mask, &masked_lm_positions, &masked_lm_ids}) {
    numbers->clear();
  }
  masked_lm_weights.clear();
  next_sentence.reset();
}

}  // namespace onebit::samples
