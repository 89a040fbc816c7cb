// Texts as sequences for the model: [CLS] text [SEP], or [CLS] text [SEP] text_pair [SEP] with the
// second part in segment 1 (Devlin et al. 2019, section 4.1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/training/finetune/example_reader.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

struct EncodeOptions {
  int64_t max_sequence_length = 128;  // special tokens included
  bool has_pairs = false;
  int threads = 1;
};

// Lengths after truncating two parts to `most` tokens together, the longer one first, as Hugging
// Face's `tokenizers` does with longest_first: if both are too long, each keeps half, and the
// second one the odd token, unless the first was longer.
struct PartLengths {
  int64_t first, second;

  bool operator==(const PartLengths&) const = default;
};
PartLengths cut_longest_first(PartLengths lengths, int64_t most);

// A text, or two, as a sequence.
struct TokenSequence {
  std::vector<int32_t> tokens;  // including the special ones
  int64_t first_part = 0;       // of them, [CLS] and [SEP] included
  bool is_cut = false;
};

// Which end of a text is left out where it is too long.
enum class CutEnd { kRight, kLeft };

// The sequence of at most `max_sequence_length` tokens for the ids of a text, or of two. Error: no
// room for the special tokens.
TokenSequence make_sequence(std::span<const int32_t> first,
                            std::optional<std::span<const int32_t>> second,
                            const text::Vocabulary& vocabulary, int64_t max_sequence_length,
                            CutEnd cut_end = CutEnd::kRight);

// Readable from any number of threads.
class EncodedExamples {
 public:
  // Error: a length without room for the special tokens.
  EncodedExamples(std::span<const Example> examples,
                  const std::shared_ptr<const text::Vocabulary>& vocabulary, text::Casing casing,
                  const EncodeOptions& options);
  // Sequences of make_sequence() with this vocabulary.
  EncodedExamples(std::vector<TokenSequence> sequences, const text::Vocabulary& vocabulary);

  int64_t size() const { return static_cast<int64_t>(sequences_.size()); }
  // Tokens of each sequence.
  const std::vector<int32_t>& lengths() const { return lengths_; }
  int64_t longest() const;
  // The number of examples that were longer than max_sequence_length and were truncated.
  int64_t cut() const { return cut_; }
  // Appends a sequence as global sample `sample`.
  void append(uint32_t example, uint64_t sample, batches::Batch& batch) const;

 private:
  void count();

  std::vector<TokenSequence> sequences_;
  std::vector<int32_t> lengths_;
  int64_t cut_ = 0;
  int32_t second_segment_ = 1;
};

// The bounds of any `sequences` examples.
batches::BatchBounds bounds_of(const EncodedExamples& examples, int64_t sequences);

// Fills `batch` with the examples `which`, for a prediction: their samples are their numbers.
void build_batch(const EncodedExamples& examples, std::span<const uint32_t> which,
                 batches::Batch& batch);

// Reports that texts longer than a sequence were truncated.
struct CutTexts {
  std::string source;               // their file
  int64_t cut = 0, all = 0;         // texts, or pairs of them
  int64_t max_sequence_length = 0;  // tokens
  bool pairs = false;
};

// Adds a sentence to the decisions of a task if any were cut.
void report_cut(const CutTexts& texts, std::vector<std::string>& decisions);

// Whoever encodes pairs calls this once: warns if the model tells two segments apart, and its
// tokenizer gives it none. `folder` is resolved by find_model_folder().
void warn_of_pairs_without_segments(const training::ModelDescription& model, const Path& folder);

}  // namespace onebit::finetune
