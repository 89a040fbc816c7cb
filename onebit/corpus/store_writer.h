// Writes a token store beside its final place and renames it when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/partial_folder.h"
#include "onebit/corpus/store_manifest.h"
#include "onebit/text/vocabulary.h"

namespace onebit::corpus {

// Sentences to be added to a store, in the encoding of the files.
class TokenizedBlock {
 public:
  TokenizedBlock(int token_size_bytes, size_t text_bytes);

  // A sentence has at least one token.
  void add_sentence(const std::vector<int32_t>& ids);
  void end_document();
  // To be called when the block is full.
  void close();

 private:
  friend class StoreWriter;

  int token_size_bytes_;
  std::string tokens_;
  uint32_t tokens_crc32_ = 0;
  std::vector<uint32_t> sentence_tokens_;
  std::vector<uint64_t> document_ends_;  // numbers of sentences in this block before each end
};

class StoreWriter {
 public:
  // Makes the folder `<output>.partial` (base/partial_folder.h). Errors: `output` is a store and
  // `overwrite` is false, or is something else that is no empty folder; another process writes it.
  StoreWriter(const Path& output, bool overwrite);
  // Removes the folder unless finish() was reached.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  const Path& partial_folder() const { return folder_->path(); }
  // To be called once, before the first block.
  void set_vocabulary(const text::Vocabulary& vocabulary, text::Casing casing);
  int token_size_bytes() const { return manifest_.token_size_bytes; }
  void add(const TokenizedBlock& block);
  // Completes the manifest with `text_bytes`, `format` and sources, syncs and renames. Errors: no
  // sentence at all.
  StoreManifest finish(uint64_t text_bytes, const std::string& format,
                       const std::vector<std::string>& sources);

 private:
  class File;

  std::optional<PartialFolder> folder_;
  StoreManifest manifest_;
  std::unique_ptr<File> tokens_, sentences_, documents_;
  uint64_t document_end_ = 0;  // sentences in finished documents
};

}  // namespace onebit::corpus
