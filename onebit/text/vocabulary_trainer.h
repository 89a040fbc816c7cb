// Learns a WordPiece vocabulary from text: words are split into characters, then the most frequent
// neighbouring pair is merged again and again (byte-pair encoding, Sennrich et al. 2016, with "##"
// on pieces that continue a word, as Hugging Face's WordPieceTrainer does).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/text/casing.h"

namespace onebit::text {

// Counts words. Each thread needs its own; merge() joins them.
class VocabularyTrainer {
 public:
  explicit VocabularyTrainer(Casing casing);
  ~VocabularyTrainer();
  VocabularyTrainer(VocabularyTrainer&&) noexcept;
  VocabularyTrainer& operator=(VocabularyTrainer&&) noexcept;

  // Special tokens in the text and bytes that are not UTF-8 are skipped.
  void add_text(std::string_view utf8);
  void merge(const VocabularyTrainer& other);

  // The tokens in id order: [PAD] [UNK] [CLS] [SEP] [MASK], the characters, the characters with
  // "##", then the merged pieces in the order found. Depends on the words and their counts alone,
  // not on the order of the text nor on `threads`. Fewer than `vocab_size` come back when no pair
  // is left that occurs twice. Of more than 1000 characters the most frequent stay, and words with
  // another one are left out. Errors: no text, a size without room for the special tokens and
  // characters.
  std::vector<std::string> train(int32_t vocab_size, int threads) const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::text
