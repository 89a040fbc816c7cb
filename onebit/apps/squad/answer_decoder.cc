#include "onebit/apps/squad/answer_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <vector>

#include "onebit/apps/squad/context_words.h"
#include "onebit/apps/squad/python_text.h"
#include "onebit/data/text/basic_tokenizer.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::squad {

namespace {

std::u32string tokenized(std::string_view original, text::Casing casing) {
  std::vector<text::BasicWord> words;
  text::BasicTokenizer(casing).split(original, words);
  std::string joined;
  for (const text::BasicWord& word : words) {
    if (!joined.empty()) joined += ' ';
    joined += word.text;
  }
  return text::code_points(joined);
}

// The places of the non-space characters.
std::vector<size_t> places_in(const std::u32string& text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != U' ') places.push_back(i);
  }
  return places;
}

// The place in the other text of the character at `place` in this one.
std::optional<size_t> aligned(size_t place, const std::vector<size_t>& from,
                              const std::vector<size_t>& to) {
  const auto found = std::lower_bound(from.begin(), from.end(), place);
  if (found == from.end() || *found != place) return std::nullopt;
  return to[static_cast<size_t>(found - from.begin())];
}

}  // namespace

std::string project_answer(std::string_view predicted, std::string_view original,
                           text::Casing casing) {
  const std::u32string wanted = text::code_points(predicted), tokens = tokenized(original, casing);
  const std::u32string source = text::code_points(original);
  const size_t begin = tokens.find(wanted);
  if (wanted.empty() || begin == std::u32string::npos) return std::string(original);
  const std::vector<size_t> in_tokens = places_in(tokens), in_source = places_in(source);
  if (in_tokens.size() != in_source.size()) return std::string(original);
  const auto first = aligned(begin, in_tokens, in_source);
  const auto last = aligned(begin + wanted.size() - 1, in_tokens, in_source);
  if (!first || !last) return std::string(original);
  std::string answer;
  for (size_t i = *first; i <= *last; ++i) text::append_utf8(source[i], answer);
  return answer;
}

namespace {

struct Span {
  const Window* window = nullptr;  // null: no answer
  int64_t start = 0, end = 0;      // positions in the window's sequence
  double start_logit = 0, end_logit = 0;

  double score() const { return start_logit + end_logit; }
};

// The `count` positions of the largest logits, largest first, the earlier of equals first. `side`
// is 0 for starts and 1 for ends.
std::vector<int64_t> largest(std::span<const float> logits, size_t side, int64_t count) {
  std::vector<int64_t> order(logits.size() / 2);
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int64_t at) { return logits[2 * static_cast<size_t>(at) + side]; };
  const auto kept = order.begin() + std::min(count, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), kept, order.end(), [&](int64_t a, int64_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  order.erase(kept, order.end());
  return order;
}

void add_spans(const Features& features, const Window& window, std::span<const float> logits,
               const DecodeOptions& options, std::vector<Span>& spans) {
  const auto ends = largest(logits, 1, options.n_best);
  for (const int64_t start : largest(logits, 0, options.n_best)) {
    if (!features.has_max_context(window, start)) continue;
    for (const int64_t end : ends) {
      const bool inside = end >= start && end - start < options.max_answer_length;
      if (!inside || features.piece_at(window, end) == nullptr) continue;
      spans.push_back({.window = &window,
                       .start = start,
                       .end = end,
                       .start_logit = logits[2 * static_cast<size_t>(start)],
                       .end_logit = logits[2 * static_cast<size_t>(end) + 1]});
    }
  }
}

class TextOfSpan {
 public:
  TextOfSpan(const Features& features, size_t question, AnswerText rule)
      : features_(features),
        context_(features.dataset()
                     .paragraphs[features.dataset().questions[question].paragraph]
                     .context),
        words_(rule == AnswerText::kProjection ? context_ : std::string_view()),
        rule_(rule) {
    require(rule == AnswerText::kOffsets || !features.vocabulary().pipeline(),
            "answers.text is \"projection\", which works on words of BERT's WordPiece, and this "
            "model has another tokenizer: use offsets");
  }

  // Begin and end, in bytes.
  std::pair<uint32_t, uint32_t> place_of(const Span& span) const {
    if (span.window == nullptr || rule_ != AnswerText::kOffsets) return {};
    return {features_.piece_at(*span.window, span.start)->begin,
            features_.piece_at(*span.window, span.end)->end};
  }

  std::string operator()(const Span& span) const {
    if (span.window == nullptr) return "";
    if (rule_ == AnswerText::kOffsets) {
      const auto [begin, end] = place_of(span);
      return context_.substr(begin, end - begin);
    }
    const ContextPiece& first = *features_.piece_at(*span.window, span.start);
    const ContextPiece& last = *features_.piece_at(*span.window, span.end);
    return project_answer(rejoined(span), words_.joined(first.word, last.word), features_.casing());
  }

 private:
  // The pieces as one text: "steve smith ' s".
  std::string rejoined(const Span& span) const {
    std::string text;
    for (int64_t at = span.start; at <= span.end; ++at) {
      const int32_t id = features_.piece_at(*span.window, at)->id;
      std::string_view token = features_.vocabulary().token(id);
      const bool continues = features_.vocabulary().is_continuation(id);
      if (continues) token.remove_prefix(2);
      if (!continues && !text.empty()) text += ' ';
      text += token;
    }
    return with_single_spaces(text);
  }

  const Features& features_;
  const std::string& context_;
  ContextWords words_;
  AnswerText rule_;
};

void set_probabilities(std::vector<AnswerCandidate>& best) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const auto& one : best) largest = std::max(largest, one.start_logit + one.end_logit);
  for (auto& one : best) {
    one.probability = std::exp(one.start_logit + one.end_logit - largest);
    sum += one.probability;
  }
  for (auto& one : best) one.probability /= sum;
}

// The texts of the best spans, each text once.
std::vector<AnswerCandidate> best_texts(const std::vector<Span>& spans, const TextOfSpan& text_of,
                                        const DecodeOptions& options, const Span& null) {
  std::vector<AnswerCandidate> best;
  std::unordered_set<std::string> seen;
  for (const Span& span : spans) {
    if (static_cast<int64_t>(best.size()) >= options.n_best) break;
    std::string text = text_of(span);
    if (!seen.insert(text).second) continue;
    const auto [begin, end] = text_of.place_of(span);
    best.push_back({.text = std::move(text),
                    .start_logit = span.start_logit,
                    .end_logit = span.end_logit,
                    .begin = begin,
                    .end = end});
  }
  if (options.may_be_unanswerable && !seen.contains("")) {
    best.push_back({.start_logit = null.start_logit, .end_logit = null.end_logit});
  }
  if (best.empty()) best.emplace_back();
  set_probabilities(best);
  return best;
}

}  // namespace

DecodedAnswer decode_answer(const Features& features, const SpanLogits& logits, size_t question,
                            const DecodeOptions& options) {
  std::vector<Span> spans;
  Span null;
  bool has_null = false;
  for (size_t i = features.first_window(question); i < features.first_window(question + 1); ++i) {
    const std::span<const float> here = logits.of(i);
    add_spans(features, features.windows()[i], here, options, spans);
    if (!options.may_be_unanswerable) continue;
    const Span no_answer{.start_logit = here[0], .end_logit = here[1]};
    if (!has_null || no_answer.score() < null.score()) null = no_answer;
    has_null = true;
  }
  if (has_null) spans.push_back(null);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.score() > b.score(); });
  DecodedAnswer decoded;
  decoded.best = best_texts(spans, TextOfSpan(features, question, options.text), options, null);
  if (!options.may_be_unanswerable) {
    decoded.text = decoded.best.front().text;
    return decoded;
  }
  const auto answer = std::find_if(decoded.best.begin(), decoded.best.end(),
                                   [](const AnswerCandidate& one) { return !one.text.empty(); });
  decoded.null_odds = null.score();
  if (answer == decoded.best.end()) return decoded;
  decoded.null_odds = null.score() - answer->start_logit - answer->end_logit;
  if (decoded.null_odds <= options.null_threshold) decoded.text = answer->text;
  return decoded;
}

std::vector<DecodedAnswer> decode_answers(const Features& features, const SpanLogits& logits,
                                          const DecodeOptions& options, int threads) {
  require(options.n_best >= 1, "n_best_size is {}: it must be at least 1", options.n_best);
  require(options.max_answer_length >= 1, "max_answer_length is {}: it must be at least 1",
          options.max_answer_length);
  std::vector<DecodedAnswer> answers(features.dataset().questions.size());
  parallel_for(threads, static_cast<int64_t>(answers.size()), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto question = static_cast<size_t>(i);
      answers[question] = decode_answer(features, logits, question, options);
    }
  });
  return answers;
}

}  // namespace onebit::squad
