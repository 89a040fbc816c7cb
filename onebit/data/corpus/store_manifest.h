// manifest.json of a store: its contents and the data to verify that it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/store.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::corpus {

// The common part of the manifests of token stores and sample stores.
struct StoreHead {
  int token_size_bytes = 2;  // 2 or 4
  text::Casing casing = text::Casing::kUncased;
  int32_t vocabulary_size = 0;
  uint32_t vocabulary_checksum = 0;
  // What vocab.txt does not say: the tokens added to it, and the names of the special ones. The
  // manifest of a plain vocabulary has neither.
  std::vector<text::AddedToken> added_tokens;
  text::SpecialNames special_names;
  // vocab.txt, or the files of a tokenizer that is not WordPiece, tokenizer.json among them.
  std::vector<std::string> vocabulary_files = {kVocabularyName};
  std::string format;  // of the sources: "lines", "prose", "jsonl", "hdf5", "tfrecord"
  std::vector<StoreFile> files;
  uint64_t source_count = 0;
  std::vector<std::string> sources;  // the first thousand files read

  // Takes the facts of a vocabulary and writes its files to `folder`. add_vocabulary_files() adds
  // them to `files`.
  void save_vocabulary(const text::Vocabulary& vocabulary, const Path& folder);
  void add_vocabulary_files(const Path& folder);
  // The vocabulary of the store in `folder` with these facts.
  text::Vocabulary load_vocabulary(const Path& folder) const;

  const StoreFile& file(const std::string& name) const { return file_of(files, name); }
};

// The names in the manifest of a kind of store, and its files.
struct StoreKind {
  const char* name;        // "token store"
  const char* format;      // value of the key "format"
  const char* of_sources;  // key of StoreHead::format
  int64_t version = 1;
  const char* made_of = "";        // "the text", for errors
  std::vector<std::string> files;  // all except the vocabulary
};

// Returns a manifest with these counts.
Json manifest_of(const StoreKind& kind, const StoreHead& head, const Json& counts);

// Reads the head. The caller reads the counts and calls finish(). Errors with `source` and the key:
// the manifest of another kind or version, a missing or mistyped key.
JsonReader read_head(const Json& json, const std::string& source, const StoreKind& kind,
                     StoreHead& head);

inline constexpr int64_t kStoreVersion = 1;
inline constexpr const char* kTokensName = "tokens.bin";
inline constexpr const char* kSentencesName = "sentences.bin";
inline constexpr const char* kDocumentsName = "documents.bin";

struct StoreManifest : StoreHead {
  uint64_t tokens = 0, sentences = 0, documents = 0;
  uint64_t text_bytes = 0;  // read, after decompression
  // Documents dropped as duplicates. Absent if duplicates were not searched for.
  std::optional<uint64_t> duplicate_documents;
};

Json manifest_to_json(const StoreManifest& manifest);
// Errors with `source` and the key: not a store's manifest, another version, a missing or mistyped
// key.
StoreManifest manifest_from_json(const Json& json, const std::string& source);

}  // namespace onebit::corpus
