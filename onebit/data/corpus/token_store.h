// Tokenized text, memory-mapped: the sentences of documents as token ids, independent of any
// sequence length. A folder with
//   tokens.bin     ids, u16 when the vocabulary has at most 65536 tokens, else u32
//   sentences.bin  u64 [sentences + 1], offsets into tokens; no sentence is empty
//   documents.bin  u64 [documents + 1], offsets into sentences; no document is empty
//   vocab.txt      the vocabulary, or the files of another tokenizer than WordPiece
//   manifest.json  version, counts, casing, checksums, sources (store_manifest.h)
// All numbers little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/corpus/store.h"
#include "onebit/data/corpus/store_manifest.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::corpus {

// Thread-safe for reading.
class TokenStore : public Store {
 public:
  // Errors, each with the path: not a store, an unfinished one, another version, a truncated file,
  // offsets out of order, a vocabulary different from the one the text was tokenized with.
  explicit TokenStore(const Path& folder);

  uint64_t tokens() const override { return manifest_.tokens; }
  uint64_t sentences() const { return manifest_.sentences; }
  uint64_t documents() const { return manifest_.documents; }
  const Path& folder() const override { return folder_; }
  const StoreManifest& manifest() const { return manifest_; }
  std::shared_ptr<const text::Vocabulary> vocabulary() const override { return vocabulary_; }
  text::Casing casing() const override { return manifest_.casing; }
  std::vector<StoreFile> content_files() const override;
  std::string counts() const override;
  void verify() const override;

  // First token of a sentence; sentence_begin(sentences()) is tokens().
  uint64_t sentence_begin(uint64_t sentence) const { return sentences_[sentence]; }
  // First sentence of a document; document_begin(documents()) is sentences().
  uint64_t document_begin(uint64_t document) const { return documents_[document]; }
  // The document that contains a sentence.
  uint64_t document_of(uint64_t sentence) const;
  // The sentence_begin() of every sentence, [sentences + 1].
  std::span<const uint64_t> sentence_offsets() const { return sentences_; }

  // Copies `count` ids from `first` on. Error: an id outside the vocabulary (a damaged store).
  void copy_tokens(uint64_t first, uint64_t count, int32_t* out) const;

 private:
  Path folder_;
  StoreManifest manifest_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
  MappedFile token_file_, sentence_file_, document_file_;
  std::span<const uint64_t> sentences_, documents_;
};

// Whether `folder` has the manifest of a token store. Never throws.
bool is_token_store(const Path& folder);

// Statistics of a token store: lengths of sentences and documents, and the share of the text that
// its vocabulary does not cover.

// Statistics of at least one length.
struct LengthStatistics {
  double mean = 0;
  uint64_t median = 0;  // the lower of the two middle ones
  uint64_t longest = 0;
  std::vector<uint64_t> histogram;  // at i: lengths in [2^i, 2^(i+1))
};

// Counts lengths. Nearly all lengths are short, and few distinct long ones occur.
class LengthCounter {
 public:
  void add(uint64_t length);
  // Requires at least one length.
  LengthStatistics statistics() const;

 private:
  std::vector<uint64_t> short_ = std::vector<uint64_t>(4096);
  std::map<uint64_t, uint64_t> long_;
  uint64_t count_ = 0, sum_ = 0;
};

// A sentence of more tokens does not fit into the sequences of most BERTs: pre-training reads it in
// pieces.
inline constexpr uint64_t kLongSentenceTokens = 512;
// The tokens of a sentence if it is such a long one, else 0.
inline uint64_t long_tokens(uint64_t tokens) {
  return tokens > kLongSentenceTokens ? tokens : 0;
}

struct StoreStatistics {
  uint64_t unknown_tokens = 0;        // [UNK]: words that pieces of the vocabulary cannot form
  uint64_t long_sentence_tokens = 0;  // in sentences of more than kLongSentenceTokens
  LengthStatistics sentence_tokens, document_tokens, document_sentences;
};

// Reads the whole store. Error: an id outside the vocabulary.
StoreStatistics statistics_of(const TokenStore& store);

}  // namespace onebit::corpus
