// The source of pre-training examples: a folder with a vocabulary, data files and a manifest with
// their checksums. Pairs and masks of a token store (token_store.h) are drawn on the fly; the
// samples of a sample store (samples/sample_store.h) contain them as their writer drew them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/corpus/store_files.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::corpus {

// Thread-safe for reading.
class Store {
 public:
  virtual ~Store() = default;

  virtual const Path& folder() const = 0;
  virtual std::shared_ptr<const text::Vocabulary> vocabulary() const = 0;
  virtual text::Casing casing() const = 0;
  virtual uint64_t tokens() const = 0;
  // The files that determine its examples: all except the vocabulary.
  virtual std::vector<StoreFile> content_files() const = 0;
  // "5 tokens, 2 sentences, 1 documents", for a table.
  virtual std::string counts() const = 0;
  // Reads every byte and verifies the checksums of the manifest. Error: the first file that
  // differs.
  virtual void verify() const = 0;
};

}  // namespace onebit::corpus
