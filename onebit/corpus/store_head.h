// What the manifests of token stores and of sample stores say alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/corpus/store_files.h"
#include "onebit/text/casing.h"

namespace onebit::corpus {

struct StoreHead {
  int token_size_bytes = 2;  // 2 or 4
  text::Casing casing = text::Casing::kUncased;
  int32_t vocabulary_size = 0;
  uint32_t vocabulary_checksum = 0;
  std::string format;  // of what it was made from: "lines", "prose", "jsonl", "hdf5", "tfrecord"
  std::vector<StoreFile> files;
  uint64_t source_count = 0;
  std::vector<std::string> sources;  // the first thousand files read

  const StoreFile& file(const std::string& name) const { return file_of(files, name); }
};

// How a kind of store names itself and what it is made of.
struct StoreKind {
  const char* name;        // "token store"
  const char* format;      // the key "format"
  const char* of_sources;  // the key that StoreHead::format has
  int64_t version = 1;
  const char* made_of = "";        // "the text", for errors
  std::vector<std::string> files;  // besides the vocabulary
};

// A manifest with these counts.
Json manifest_of(const StoreKind& kind, const StoreHead& head, const Json& counts);

// Reads the head; the caller reads the counts and calls finish(). Errors with `source` and the key:
// the manifest of another kind or version, a missing or mistyped key.
JsonReader read_head(const Json& json, const std::string& source, const StoreKind& kind,
                     StoreHead& head);

}  // namespace onebit::corpus
