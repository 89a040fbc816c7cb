// manifest.json of a token store: its contents and how to verify that it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/corpus/store_files.h"
#include "onebit/text/casing.h"

namespace onebit::corpus {

inline constexpr int64_t kStoreVersion = 1;
inline constexpr const char* kTokensName = "tokens.bin";
inline constexpr const char* kSentencesName = "sentences.bin";
inline constexpr const char* kDocumentsName = "documents.bin";

struct StoreManifest {
  int token_size_bytes = 2;  // 2 or 4
  uint64_t tokens = 0, sentences = 0, documents = 0;
  uint64_t text_bytes = 0;  // read, after decompression
  text::Casing casing = text::Casing::kUncased;
  int32_t vocabulary_size = 0;
  uint32_t vocabulary_checksum = 0;
  // Dropped because equal ones were there before; absent where nobody looked for them.
  std::optional<uint64_t> duplicate_documents;
  std::string format;  // how the text was read: "lines", "prose", "jsonl", joined by " + "
  std::vector<StoreFile> files;
  uint64_t source_count = 0;
  std::vector<std::string> sources;  // the first thousand files read

  const StoreFile& file(const std::string& name) const { return file_of(files, name); }
};

Json manifest_to_json(const StoreManifest& manifest);
// Errors with `source` and the key: not a store's manifest, another version, a missing or mistyped
// key.
StoreManifest manifest_from_json(const Json& json, const std::string& source);

}  // namespace onebit::corpus
