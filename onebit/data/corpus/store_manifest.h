// manifest.json of a token store: its contents and the data to verify that it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/data/corpus/store_head.h"

namespace onebit::corpus {

inline constexpr int64_t kStoreVersion = 1;
inline constexpr const char* kTokensName = "tokens.bin";
inline constexpr const char* kSentencesName = "sentences.bin";
inline constexpr const char* kDocumentsName = "documents.bin";

struct StoreManifest : StoreHead {
  uint64_t tokens = 0, sentences = 0, documents = 0;
  uint64_t text_bytes = 0;  // read, after decompression
  // Documents dropped as duplicates; absent if duplicates were not searched for.
  std::optional<uint64_t> duplicate_documents;
};

Json manifest_to_json(const StoreManifest& manifest);
// Errors with `source` and the key: not a store's manifest, another version, a missing or mistyped
// key.
StoreManifest manifest_from_json(const Json& json, const std::string& source);

}  // namespace onebit::corpus
