// Learns a tokenizer with byte pairs or a unigram model, and writes it as Hugging Face's
// `tokenizers` reads it. WordPiece is in vocabulary_trainer.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "onebit/data/corpus/word_counts.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/pipeline.h"

namespace onebit::corpus {

enum class VocabularyKind {
  kWordPiece,
  kUnigram,    // of NFKC text, words marked as sentencepiece does (XLM-R)
  kBytePairs,  // of bytes, words cut as GPT-2 does (RoBERTa, ModernBERT)
};

// "wordpiece", "unigram" or "bpe". Error: another name. The message lists them.
VocabularyKind vocabulary_kind_from_name(const std::string& name);

// Counts words. Each thread needs its own. merge() combines them.
class TokenizerTrainer {
 public:
  // `kind` is not kWordPiece. Text is normalised as `casing` says.
  TokenizerTrainer(VocabularyKind kind, text::Casing casing);

  // Bytes that are not UTF-8 count as U+FFFD.
  void add_text(std::string_view utf8);
  void merge(const TokenizerTrainer& other) { counts_.add(other.counts_); }

  // Returns the content of tokenizer.json: BERT's special tokens with the ids 0 to 4, then the
  // pieces. The result depends only on the words and their counts. It has fewer than `vocab_size`
  // tokens if the text yields no more. Words of more than 256 bytes are left out. Errors: no text,
  // a size without room for the special tokens and the bytes or characters.
  std::string train(int32_t vocab_size, int threads) const;

 private:
  VocabularyKind kind_;
  text::Casing casing_;
  std::shared_ptr<const text::PipelineRules> rules_;  // without pieces
  WordCounts counts_;
};

// The content of tokenizer_config.json beside it.
std::string trained_tokenizer_config();

}  // namespace onebit::corpus
