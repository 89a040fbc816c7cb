// Learns a WordPiece vocabulary from text: words are split into characters, then the most frequent
// adjacent pair is merged repeatedly (byte-pair encoding, Sennrich et al. 2016, with "##" on pieces
// that continue a word, as in Hugging Face's WordPieceTrainer).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/casing.h"

namespace onebit::corpus {

// Counts words. Each thread needs its own. merge() combines them.
class VocabularyTrainer {
 public:
  explicit VocabularyTrainer(text::Casing casing);
  ~VocabularyTrainer();
  VocabularyTrainer(VocabularyTrainer&&) noexcept;
  VocabularyTrainer& operator=(VocabularyTrainer&&) noexcept;

  // Special tokens in the text and bytes that are not UTF-8 are skipped.
  void add_text(std::string_view utf8);
  void merge(const VocabularyTrainer& other);

  // Returns the tokens in id order: [PAD] [UNK] [CLS] [SEP] [MASK], the characters, the characters
  // with "##", then the merged pieces in the order found. The result depends only on the words and
  // their counts, not on the order of the text nor on `threads`. It has fewer than `vocab_size`
  // tokens if no pair is left that occurs twice. Of more than 1000 characters the most frequent are
  // kept, and words with any other are left out. Errors: no text, a size without room for the
  // special tokens and characters.
  std::vector<std::string> train(int32_t vocab_size, int threads) const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::corpus
