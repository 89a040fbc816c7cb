// Sentences as sequences for the model: [CLS] pieces of the words [SEP]. The first piece of a word
// carries its label, as in Devlin et al. 2019, section 5.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onebit/apps/tag/sentence.h"
#include "onebit/apps/tag/word_windows.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::tag {

struct EncodeOptions {
  int64_t max_sequence_length = 128;  // [CLS] and [SEP] included
  int64_t stride = 64;  // pieces from the start of a window of a long sentence to the next
  int threads = 1;
};

// A sequence; its owned words are numbered across all sentences.
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

}  // namespace onebit::tag
