#include "onebit/apps/squad/features.h"

#include <algorithm>
#include <utility>

#include "onebit/apps/squad/context_words.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::squad {

namespace {

void check_options(const FeatureOptions& options, int64_t special) {
  require(options.max_question_length >= 1, "max_question_length is {}: it must be at least 1",
          options.max_question_length);
  require(options.max_sequence_length > options.max_question_length + special &&
              options.max_sequence_length <= 65536,
          "max_sequence_length is {}: it must leave room for a question of {} tokens "
          "(max_question_length), {} special tokens and some context, and be at most 65536",
          options.max_sequence_length, options.max_question_length, special);
  require(options.doc_stride >= 1, "doc_stride is {}: it must be at least 1", options.doc_stride);
}

std::vector<ContextPiece> context_pieces(text::Tokenizer& tokenizer, std::string_view context) {
  std::vector<text::Piece> pieces;
  tokenizer.encode_with_offsets(context, pieces);
  const ContextWords words(context);
  std::vector<ContextPiece> found;
  found.reserve(pieces.size());
  for (const text::Piece& piece : pieces) {
    // With many tokenizers the blank before a word belongs to its first token.
    const auto begin = static_cast<uint32_t>(words.text_begin(piece.begin, piece.end));
    found.push_back({piece.id, begin, piece.end, words.word_at(begin)});
  }
  return found;
}

}  // namespace

FeatureOptions within(FeatureOptions options, int64_t tokens) {
  if (options.max_sequence_length <= tokens) return options;
  const auto in_proportion = [&](int64_t& size) {
    size = std::max<int64_t>(1, tokens * size / options.max_sequence_length);
  };
  in_proportion(options.max_question_length);
  in_proportion(options.doc_stride);
  options.max_sequence_length = tokens;
  return options;
}

Features::Features(const Dataset& dataset, std::shared_ptr<const text::Vocabulary> vocabulary,
                   text::Casing casing, const FeatureOptions& options)
    : dataset_(dataset), vocabulary_(std::move(vocabulary)), casing_(casing), options_(options) {
  check_options(options, special_tokens());
  contexts_.resize(dataset.paragraphs.size());
  questions_.resize(dataset.questions.size());
  std::vector<AnswerSpan> answers(dataset.questions.size());
  const auto in_parts = [&](size_t count, const auto& body) {
    parallel_for(options_.threads, static_cast<int64_t>(count), 16,
                 [&](int64_t begin, int64_t end) {
                   text::Tokenizer tokenizer(vocabulary_, casing);
                   for (int64_t i = begin; i < end; ++i) body(tokenizer, static_cast<size_t>(i));
                 });
  };
  in_parts(contexts_.size(), [&](text::Tokenizer& tokenizer, size_t i) {
    contexts_[i] = context_pieces(tokenizer, dataset.paragraphs[i].context);
  });
  in_parts(questions_.size(), [&](text::Tokenizer& tokenizer, size_t i) {
    const Question& question = dataset.questions[i];
    tokenizer.encode(question.text, questions_[i]);
    if (options_.use == Use::kTrain && !question.impossible) {
      const std::vector<ContextPiece>& context = contexts_[question.paragraph];
      const Answer& answer = question.answers.at(0);
      answers[i] =
          vocabulary_->pipeline()
              ? find_characters(dataset.paragraphs[question.paragraph].context, context, answer)
              : find_answer(tokenizer, context, answer);
    }
  });
  for (size_t question = 0; question < questions_.size(); ++question) {
    first_window_.push_back(windows_.size());
    cut_windows(question, answers[question]);
  }
  first_window_.push_back(windows_.size());
}

// The tokens of the answer's text within the tokens of its words ("1895" in "(1895-1943)."), or all
// tokens of the words if it does not occur there.
Features::AnswerSpan Features::find_answer(text::Tokenizer& tokenizer,
                                           const std::vector<ContextPiece>& context,
                                           const Answer& answer) {
  const auto first_of_word = [&](int32_t word) {
    const auto found = std::lower_bound(
        context.begin(), context.end(), word,
        [](const ContextPiece& piece, int32_t value) { return piece.word < value; });
    return static_cast<int64_t>(found - context.begin());
  };
  const AnswerSpan words{first_of_word(answer.first_word), first_of_word(answer.last_word + 1) - 1};
  std::vector<int32_t> wanted;
  tokenizer.encode(answer.text, wanted);
  const auto size = static_cast<int64_t>(wanted.size());
  for (int64_t first = words.first; size > 0 && first + size - 1 <= words.last; ++first) {
    const bool equal =
        std::equal(wanted.begin(), wanted.end(), context.begin() + first,
                   [](int32_t id, const ContextPiece& piece) { return id == piece.id; });
    if (equal) return {first, first + size - 1};
  }
  return words;
}

Features::AnswerSpan Features::find_characters(std::string_view text,
                                               const std::vector<ContextPiece>& context,
                                               const Answer& answer) {
  const size_t begin = byte_of_code_point(text, answer.start), end = begin + answer.text.size();
  const auto first =
      std::ranges::find_if(context, [&](const ContextPiece& piece) { return piece.end > begin; });
  const auto after = std::find_if(first, context.end(),
                                  [&](const ContextPiece& piece) { return piece.begin >= end; });
  return {first - context.begin(), after - context.begin() - 1};
}

void Features::cut_windows(size_t question, const AnswerSpan& answer) {
  const auto longest_question = static_cast<size_t>(options_.max_question_length);
  if (questions_[question].size() > longest_question) {
    questions_[question].resize(longest_question);
    ++questions_cut_;
  }
  const auto asked = static_cast<int64_t>(questions_[question].size());
  const Question& asking = dataset_.questions[question];
  const auto pieces = static_cast<int64_t>(contexts_[asking.paragraph].size());
  const bool labelled = options_.use == Use::kTrain && !asking.impossible;
  for (const ContextWindow& window : context_windows(
           pieces, options_.max_sequence_length - asked - special_tokens(), options_.doc_stride)) {
    Window made{.question = static_cast<uint32_t>(question),
                .first_piece = static_cast<uint32_t>(window.begin),
                .pieces = static_cast<uint32_t>(window.size)};
    if (labelled) {
      const bool inside = answer.first <= answer.last && answer.first >= window.begin &&
                          answer.last < window.begin + window.size;
      if (!inside && options_.without_answer == WindowsWithoutAnswer::kDrop) {
        ++windows_dropped_;
        continue;
      }
      if (inside) {
        const int64_t begin = context_begin(made) - window.begin;
        made.start = static_cast<int32_t>(answer.first + begin);
        made.end = static_cast<int32_t>(answer.last + begin);
      }
    }
    windows_.push_back(made);
  }
}

int64_t Features::length(const Window& window) const {
  return context_begin(window) + window.pieces + 1;
}

int64_t Features::context_begin(const Window& window) const {
  const auto asked = static_cast<int64_t>(questions_[window.question].size());
  return 1 + asked + vocabulary_->pair_template().separators;
}

const ContextPiece* Features::piece_at(const Window& window, int64_t position) const {
  const int64_t inside = position - context_begin(window);
  if (inside < 0 || inside >= window.pieces) return nullptr;
  const std::vector<ContextPiece>& context =
      contexts_[dataset_.questions[window.question].paragraph];
  return &context[window.first_piece + static_cast<size_t>(inside)];
}

bool Features::has_max_context(const Window& window, int64_t position) const {
  if (piece_at(window, position) == nullptr) return false;
  const auto asked = static_cast<int64_t>(questions_[window.question].size());
  const auto pieces =
      static_cast<int64_t>(contexts_[dataset_.questions[window.question].paragraph].size());
  const std::vector<ContextWindow> windows = context_windows(
      pieces, options_.max_sequence_length - asked - special_tokens(), options_.doc_stride);
  const int64_t piece = window.first_piece + position - context_begin(window);
  return windows[max_context_window(windows, piece)].begin == window.first_piece;
}

void Features::append(const Window& window, uint64_t sample, batches::Batch& batch) const {
  const int64_t first_row = batch.rows();
  const std::vector<int32_t>& question = questions_[window.question];
  const std::vector<ContextPiece>& context =
      contexts_[dataset_.questions[window.question].paragraph];
  batch.tokens.push_back(vocabulary_->cls_id());
  batch.tokens.insert(batch.tokens.end(), question.begin(), question.end());
  batch.tokens.insert(batch.tokens.end(), vocabulary_->pair_template().separators,
                      vocabulary_->sep_id());
  batch.segments.resize(batch.tokens.size(), 0);
  for (size_t i = 0; i < window.pieces; ++i) {
    batch.tokens.push_back(context[window.first_piece + i].id);
  }
  batch.tokens.push_back(vocabulary_->sep_id());
  batch.segments.resize(batch.tokens.size(), vocabulary_->second_segment());
  batch.end_sequence(first_row, sample);
}

SpanStream::SpanStream(const Features& features, const batches::DealOptions& options)
    : features_(features),
      dealer_(lengths_of(features), options,
              fmt::format("{}: {} windows", features.dataset().source, features.windows().size())),
      micro_batch_(options.micro_batch) {}

void SpanStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  const std::vector<batches::DealtSample> samples = dealer_.deal(first_sample, micro_step);
  batch.sequence_labels.resize(2 * samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const Window& window = features_.windows()[samples[i].item];
    features_.append(window, samples[i].sample, batch);
    batch.sequence_labels[i] = window.start;
    batch.sequence_labels[samples.size() + i] = window.end;
  }
}

batches::BatchBounds SpanStream::bounds() const {
  return bounds_of(features_, micro_batch_);
}

std::vector<int32_t> lengths_of(const Features& features) {
  std::vector<int32_t> lengths;
  lengths.reserve(features.windows().size());
  for (const Window& window : features.windows()) {
    lengths.push_back(static_cast<int32_t>(features.length(window)));
  }
  return lengths;
}

batches::BatchBounds bounds_of(const Features& features, int64_t windows) {
  const int64_t longest = features.options().max_sequence_length;
  return {.sequences = windows, .rows = windows * longest, .longest = longest};
}

void build_batch(const Features& features, std::span<const uint32_t> which, batches::Batch& batch) {
  batch.clear();
  for (const uint32_t window : which) features.append(features.windows()[window], window, batch);
}

}  // namespace onebit::squad
