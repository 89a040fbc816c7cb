// Converts text to ids, equal to Hugging Face's `tokenizers`. BERT's WordPiece (Schuster and
// Nakajima 2012) is a basic tokenizer and greedy longest match: its rules are in basic_tokenizer.h
// (words) and word_piece.h (pieces). Other tokenizers follow the rules of their file (pipeline.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "onebit/data/text/casing.h"
#include "onebit/data/text/explained_word.h"
#include "onebit/data/text/piece.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

// Not thread-safe, because it caches words: each thread needs its own; they can share a vocabulary.
// Adds no [CLS] or [SEP].
class Tokenizer {
 public:
  // `casing` is for WordPiece; other vocabularies have rules of their own.
  Tokenizer(std::shared_ptr<const Vocabulary> vocabulary, Casing casing);
  ~Tokenizer();
  // A copy shares the vocabulary and starts with an empty cache.
  Tokenizer(const Tokenizer& other);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(const Tokenizer&) = delete;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Appends the ids of `utf8`. Bytes that are not UTF-8 count as U+FFFD, which WordPiece drops.
  void encode(std::string_view utf8, std::vector<int32_t>& ids);
  // Appends the same ids with their byte ranges. `utf8` must be below 4 GiB.
  void encode_with_offsets(std::string_view utf8, std::vector<Piece>& pieces);

  // Appends the tokens of encode_with_offsets with the outcome for every word. Slow.
  void explain(std::string_view utf8, std::vector<ExplainedWord>& words) const;

  const Vocabulary& vocabulary() const;
  Casing casing() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::text
