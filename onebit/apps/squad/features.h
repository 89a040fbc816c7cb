// SQuAD questions as sequences for the model: [CLS] question [SEP] window of the paragraph [SEP]
// (Devlin et al. 2019, section 4.2), or as the model's tokenizer writes pairs. Long paragraphs give
// several overlapping windows. Paragraphs are tokenized once and shared by their questions and
// windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/squad/dataset.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::squad {

// How training treats windows of an answerable question that do not contain its whole answer.
enum class WindowsWithoutAnswer {
  kDrop,   // leave them out
  kToCls,  // train the model to point to [CLS]
};

struct FeatureOptions {
  int64_t max_sequence_length = 384;  // special tokens included
  int64_t doc_stride = 128;           // tokens from the start of a window to the start of the next
  int64_t max_question_length = 64;   // longer questions are truncated
  Use use = Use::kTrain;
  WindowsWithoutAnswer without_answer = WindowsWithoutAnswer::kDrop;
  int threads = 1;
};

// The options for windows of at most `tokens`, in the same proportions.
FeatureOptions within(FeatureOptions options, int64_t tokens);

// A token of a paragraph.
struct ContextPiece {
  int32_t id;
  uint32_t begin, end;  // bytes of the context
  int32_t word;         // index in ContextWords

  bool operator==(const ContextPiece&) const = default;
};

struct Window {
  uint32_t question;             // of the dataset
  uint32_t first_piece, pieces;  // of the paragraph
  // For training, positions of the answer's first and last token in the sequence. Both are 0
  // ([CLS]) if the window or the paragraph contains no answer.
  int32_t start = 0, end = 0;

  bool operator==(const Window&) const = default;
};

// Refers to the dataset, which must outlive it. Readable from any number of threads.
class Features {
 public:
  // Errors: a length without room for question and context, or a stride out of range.
  Features(const Dataset& dataset, std::shared_ptr<const text::Vocabulary> vocabulary,
           text::Casing casing, const FeatureOptions& options);

  const Dataset& dataset() const { return dataset_; }
  const FeatureOptions& options() const { return options_; }
  const text::Vocabulary& vocabulary() const { return *vocabulary_; }
  text::Casing casing() const { return casing_; }
  // Windows ordered by question, then from the front of the paragraph to its end.
  const std::vector<Window>& windows() const { return windows_; }
  // The windows of a question are [first_window(question), first_window(question + 1)).
  size_t first_window(size_t question) const { return first_window_[question]; }
  const std::vector<ContextPiece>& pieces(size_t paragraph) const { return contexts_[paragraph]; }
  // The number of questions that were longer than max_question_length.
  int64_t questions_cut() const { return questions_cut_; }
  // The number of windows that were left out because they do not contain the answer.
  int64_t windows_dropped() const { return windows_dropped_; }

  // The number of tokens of the sequence.
  int64_t length(const Window& window) const;
  // The position of the window's first context token in the sequence.
  int64_t context_begin(const Window& window) const;
  // The context token at a position of the sequence, or null for all other tokens.
  const ContextPiece* piece_at(const Window& window, int64_t position) const;
  // Whether this window, of all windows of the question, has the maximum context on both sides of
  // the context token at `position` (the earliest of equals).
  bool has_max_context(const Window& window, int64_t position) const;
  // Appends the sequence as global sample `sample`.
  void append(const Window& window, uint64_t sample, batches::Batch& batch) const;

 private:
  // Tokens of a paragraph that correspond to an answer's words: first and last, both inclusive.
  // Empty if last < first.
  struct AnswerSpan {
    int64_t first = 0, last = -1;
  };

  static AnswerSpan find_answer(text::Tokenizer& tokenizer,
                                const std::vector<ContextPiece>& context, const Answer& answer);
  // The tokens that contain the answer's characters.
  static AnswerSpan find_characters(std::string_view text, const std::vector<ContextPiece>& context,
                                    const Answer& answer);
  int64_t special_tokens() const { return 2 + vocabulary_->pair_template().separators; }
  void cut_windows(size_t question, const AnswerSpan& answer);

  const Dataset& dataset_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
  text::Casing casing_;
  FeatureOptions options_;
  std::vector<std::vector<ContextPiece>> contexts_;  // by paragraph
  std::vector<std::vector<int32_t>> questions_;
  std::vector<Window> windows_;
  std::vector<size_t> first_window_;  // [questions + 1]
  int64_t questions_cut_ = 0, windows_dropped_ = 0;
};

// Batches of SQuAD windows, packed without padding. A step's samples do not depend on the number of
// ranks. Within a step they are dealt by length, so that ranks and micro-steps get equal work.

// Training: every window once per epoch, in a new order each. Usable from any number of threads.
class SpanStream {
 public:
  // `features` must outlive it. Errors: no window, more ranks than windows, an option out of range.
  SpanStream(const Features& features, const batches::DealOptions& options);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Its sequence_labels [2, B] are the first
  // and the last token of the answer, counted from the sequence's first row, and 0 ([CLS]) if there
  // is none.
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const Features& features_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

// The tokens of each window.
std::vector<int32_t> lengths_of(const Features& features);

// The bounds of any `windows` windows.
batches::BatchBounds bounds_of(const Features& features, int64_t windows);

// Prediction: fills `batch` with the windows `which`, without labels.
void build_batch(const Features& features, std::span<const uint32_t> which, batches::Batch& batch);

}  // namespace onebit::squad
