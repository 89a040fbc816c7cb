// Decodes the logits of a question's windows into its answer (Devlin et al. 2019, sections 4.2 and
// 4.3), by the rules of the published SQuAD programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/apps/squad/features.h"
#include "onebit/data/text/casing.h"

namespace onebit::squad {

// Finds the paragraph's text for predicted pieces as the published SQuAD programs do.

// The part of `original` (words of the paragraph) that corresponds to `predicted` (rejoined pieces,
// normalised), aligned by counting the non-space characters in `original` and in its tokenized
// form. All of `original` if that fails.
std::string project_answer(std::string_view predicted, std::string_view original,
                           text::Casing casing);

// The model's output for every window: for each token, its logits as first and as last token of the
// answer.
class SpanLogits {
 public:
  // Starts with zeros. Keeps no reference to `features`.
  explicit SpanLogits(const Features& features) {
    begins_.push_back(0);
    for (const Window& window : features.windows()) {
      begins_.push_back(begins_.back() + 2 * static_cast<size_t>(features.length(window)));
    }
    values_.resize(begins_.back());
  }

  // [tokens of the window, 2]: start, end.
  std::span<float> of(size_t window) {
    return std::span(values_).subspan(begins_[window], begins_[window + 1] - begins_[window]);
  }
  std::span<const float> of(size_t window) const {
    return std::span(values_).subspan(begins_[window], begins_[window + 1] - begins_[window]);
  }
  // The logits of all windows, one after the other.
  std::span<float> all() { return values_; }

 private:
  std::vector<size_t> begins_;  // [windows + 1]
  std::vector<float> values_;
};

// How the text of an answer is derived from its tokens.
enum class AnswerText {
  kOffsets,  // cut from the paragraph, from the first character of its first token to the last
  // As in the published programs: project_answer(). Error: a tokenizer that is not WordPiece.
  kProjection,
};

struct DecodeOptions {
  int64_t n_best = 20;             // candidates kept, and starts and ends tried in each window
  int64_t max_answer_length = 30;  // tokens
  AnswerText text = AnswerText::kOffsets;
  bool may_be_unanswerable = false;  // version 2.0
  // Version 2.0: the answer is "" if null score - best answer's score exceeds this.
  double null_threshold = 0;
};

struct AnswerCandidate {
  std::string text;
  double probability = 0, start_logit = 0, end_logit = 0;
  uint32_t begin = 0, end = 0;  // bytes of the paragraph. Empty with AnswerText::kProjection
};

struct DecodedAnswer {
  std::string text;                   // "" if no answer can be given
  std::vector<AnswerCandidate> best;  // most probable first, texts are unique, and never empty
  double null_odds = 0;               // version 2.0: null score - best answer's score
};

// A candidate begins and ends at tokens of the paragraph, begins at a token that has its maximum
// context in that window, and is at most max_answer_length tokens long.
DecodedAnswer decode_answer(const Features& features, const SpanLogits& logits, size_t question,
                            const DecodeOptions& options);

// Decodes an answer for each question of the dataset, on `threads` threads.
std::vector<DecodedAnswer> decode_answers(const Features& features, const SpanLogits& logits,
                                          const DecodeOptions& options, int threads);

}  // namespace onebit::squad
