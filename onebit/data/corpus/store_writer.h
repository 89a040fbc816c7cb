// Writes a token store in a temporary folder and renames it when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "onebit/data/corpus/store_manifest.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::corpus {

// Detects documents whose tokens equal an earlier one's.

// The hash is the value of the document's tokens as a polynomial, at two points modulo the prime
// 2^61 - 1. Two different documents of up to L tokens have the same hash with a probability of
// about (L / 2^61)^2: among a billion documents of a million tokens the probability of one wrong
// match is below 10^-6. The memory does not depend on the length of documents: about 50 bytes per
// distinct document.
class SeenDocuments {
 public:
  // Adds a sentence to the current document. Sentence boundaries are part of the hash.
  void add_sentence(std::span<const uint16_t> ids);
  void add_sentence(std::span<const int32_t> ids);
  // Ends the document, and returns whether an earlier document had the same sentences.
  bool end_document();

 private:
  struct Hash {
    uint64_t first = 0, second = 0;
    bool operator==(const Hash&) const = default;
  };
  struct Bucket {
    size_t operator()(const Hash& hash) const { return static_cast<size_t>(hash.first); }
  };

  template <typename Id>
  void add_ids(std::span<const Id> ids);
  void add(uint64_t value);

  Hash document_;
  std::unordered_set<Hash, Bucket> seen_;
};

// Sentences to be added to a store, in the encoding of the files.
class TokenizedBlock {
 public:
  TokenizedBlock(int token_size_bytes, size_t text_bytes);

  // A sentence has at least one token.
  void add_sentence(const std::vector<int32_t>& ids);
  void end_document();
  // Must be called when the block is full.
  void close();

 private:
  friend class StoreWriter;

  int token_size_bytes_;
  std::string tokens_;
  uint32_t tokens_crc32_ = 0;
  std::vector<uint32_t> sentence_tokens_;
  std::vector<uint64_t> document_ends_;  // as the number of sentences in this block before each
};

class StoreWriter {
 public:
  // Creates the folder `<output>.partial` (base/partial_file.h). Errors: `output` is a store and
  // `overwrite` is false, or is anything else but an empty folder, or another process is writing
  // it.
  StoreWriter(const Path& output, bool overwrite);
  // Removes the folder unless finish() has completed.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  const Path& partial_folder() const { return folder_->path(); }
  // Must be called once, before the first block.
  void set_vocabulary(const text::Vocabulary& vocabulary, text::Casing casing);
  int token_size_bytes() const { return manifest_.token_size_bytes; }
  // Keeps only the first of equal documents. It must be called before the first block. A document
  // is buffered in memory until it ends. One of more than kMaxHeldBytes is always kept.
  static constexpr size_t kMaxHeldBytes = size_t{64} << 20;
  void drop_duplicates();
  void add(const TokenizedBlock& block);
  // The number of tokens in sentences of more than kLongSentenceTokens.
  bool has_sentences() const { return manifest_.sentences > 0 || open_.all_tokens > 0; }
  uint64_t long_sentence_tokens() const { return long_sentence_tokens_; }
  // The number of tokens in dropped documents.
  uint64_t duplicate_tokens() const { return duplicate_tokens_; }
  // Completes the manifest with `text_bytes`, `format` and sources, syncs and renames. Error: no
  // sentence at all.
  StoreManifest finish(uint64_t text_bytes, const std::string& format,
                       const std::vector<std::string>& sources);

 private:
  // The document being read, if duplicates are dropped.
  struct OpenDocument {
    std::string tokens;
    std::vector<uint32_t> sentence_tokens;
    uint64_t all_tokens = 0;  // including those that have been written
    bool is_kept = false;
  };

  void add_unseen(const TokenizedBlock& block);
  // Buffers sentences [begin, end) of the block, whose tokens begin at `tokens`, and returns their
  // end.
  const char* hold_sentences(const TokenizedBlock& block, size_t begin, size_t end,
                             const char* tokens);
  void write_held();
  void end_held_document();

  std::optional<PartialFolder> folder_;
  StoreManifest manifest_;
  std::unique_ptr<StoreFileWriter> tokens_, sentences_, documents_;
  uint64_t document_end_ = 0;  // number of sentences in finished documents
  std::optional<SeenDocuments> seen_;
  OpenDocument open_;
  uint64_t duplicate_tokens_ = 0, long_sentence_tokens_ = 0;
};

}  // namespace onebit::corpus
