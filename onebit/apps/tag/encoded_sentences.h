// Sentences as sequences for the model: [CLS] pieces of the words [SEP]. The first piece of a word
// carries its label, as in Devlin et al. 2019, section 5.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/sentence.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::tag {

// Overlapping windows over the words of a sentence that is too long for the model. Every word is
// predicted in the window where it has the most context.
struct WordWindow {
  uint32_t first, words;        // that the model reads
  uint32_t first_owned, owned;  // the words that it predicts

  bool operator==(const WordWindow&) const = default;
};

// `starts` is the number of pieces before each word, and in all, [words + 1]. A window has at most
// `longest` pieces, but at least one word. The next begins about `stride` pieces later, at least
// one word. Of the windows with a word, the one in which the smaller of the word's distances to the
// ends, in pieces, is largest owns it (the first of equals). Windows that own none are left out. No
// windows if there are no words.
std::vector<WordWindow> word_windows(std::span<const uint32_t> starts, int64_t longest,
                                     int64_t stride);

struct EncodeOptions {
  int64_t max_sequence_length = 128;  // [CLS] and [SEP] included
  int64_t stride = 64;  // pieces from the start of a window of a long sentence to the next
  int threads = 1;
};

// A sequence. Its owned words are numbered across all sentences.
struct Window {
  uint32_t sentence;
  WordWindow words;   // of the sentence
  size_t first_word;  // the first owned one
};

// Words are tokenized separately, as `tokenizers` does with pre-split words. A word that vanishes
// (only control characters) becomes [UNK], so that every word has a piece. Readable from any number
// of threads.
class EncodedSentences {
 public:
  // Errors: no room for a piece besides the special tokens, a stride below 1.
  EncodedSentences(std::span<const Sentence> sentences,
                   const std::shared_ptr<const text::Vocabulary>& vocabulary, text::Casing casing,
                   const EncodeOptions& options);

  // In the order of the sentences: one per sentence, several if it is long, none without words.
  const std::vector<Window>& windows() const { return windows_; }
  int64_t words() const { return words_; }
  // Tokens of each window.
  const std::vector<int32_t>& lengths() const { return lengths_; }
  int64_t longest() const;
  // The maximum number of words that a window owns.
  int64_t most_owned() const;
  // The number of sentences that are longer than a window.
  int64_t split() const { return split_; }
  // The number of words with more pieces than fit into a window: the last pieces are left out.
  int64_t cut_words() const { return cut_words_; }
  // Appends a window as global sample `sample`. The rows of its owned words become labelled rows.
  void append(uint32_t window, uint64_t sample, batches::Batch& batch) const;

 private:
  struct Pieces {
    std::vector<int32_t> tokens;
    std::vector<uint32_t> starts;  // [words + 1]
    int64_t cut_words = 0;
  };

  std::vector<Pieces> sentences_;
  std::vector<Window> windows_;
  std::vector<int32_t> lengths_;
  int32_t cls_, sep_;
  int64_t words_ = 0, split_ = 0, cut_words_ = 0;
};

// Batches of windows of sentences, packed without padding.

// Training: every window once per epoch, in a new order each. Usable from any number of threads.
class WindowStream {
 public:
  // Both must outlive the stream. `targets` [words] are TagSet's. Error: fewer windows than ranks.
  // `source` is the name of the file.
  WindowStream(const EncodedSentences& sentences, std::span<const int32_t> targets,
               const batches::DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Labels of its rows are the targets of
  // words that the windows own.
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const EncodedSentences& sentences_;
  std::span<const int32_t> targets_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

// The bounds of any `windows` windows.
batches::BatchBounds bounds_of(const EncodedSentences& sentences, int64_t windows);

// Prediction: fills `batch` with the windows `which`. Its labelled rows have no labels.
void build_batch(const EncodedSentences& sentences, std::span<const uint32_t> which,
                 batches::Batch& batch);

}  // namespace onebit::tag
