// Token stores in which every token is unique, so that an example reveals its origin.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/corpus/store_writer.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/philox.h"

namespace onebit::corpus {

inline constexpr int32_t kFirstWord = 7;  // behind the special and unused tokens

// [PAD] [UNK] [CLS] [SEP] [MASK] [unused0] [unused1] w7 w8 ..., where every fifth is "##w12" if
// `continuations`.
inline text::Vocabulary sample_vocabulary(int32_t size, bool continuations = false) {
  std::vector<std::string> tokens = {"[PAD]",  "[UNK]",     "[CLS]",    "[SEP]",
                                     "[MASK]", "[unused0]", "[unused1]"};
  for (int32_t id = kFirstWord; id < size; ++id) {
    tokens.push_back(fmt::format("{}w{}", continuations && id % 5 == 0 ? "##" : "", id));
  }
  return text::Vocabulary::from_tokens(tokens, "sample");
}

// The sizes of the sentences of one document.
using SampleDocument = std::vector<int>;

// `documents` of 1 to 40 sentences of 1 to 30 tokens.
inline std::vector<SampleDocument> sample_documents(int documents, uint64_t seed) {
  RandomSequence random(seed, 1, 1);
  std::vector<SampleDocument> made(static_cast<size_t>(documents));
  for (SampleDocument& document : made) {
    document.resize(1 + random.below(40));
    for (int& tokens : document) tokens = 1 + static_cast<int>(random.below(30));
  }
  return made;
}

// Token number n of the store is kFirstWord + n. The vocabulary has at least that many entries.
inline std::shared_ptr<const TokenStore> make_store(const Path& folder,
                                                    const std::vector<SampleDocument>& documents,
                                                    int32_t least_vocabulary_size = 0,
                                                    bool continuations = false) {
  int32_t size = kFirstWord;
  for (const SampleDocument& document : documents) {
    for (const int tokens : document) size += tokens;
  }
  size = std::max(size, least_vocabulary_size);
  StoreWriter writer(folder, false);
  writer.set_vocabulary(sample_vocabulary(size, continuations), text::Casing::kUncased);
  TokenizedBlock block(writer.token_size_bytes(), 0);
  int32_t next = kFirstWord;
  for (const SampleDocument& document : documents) {
    for (const int tokens : document) {
      std::vector<int32_t> ids;
      for (int i = 0; i < tokens; ++i) ids.push_back(next++);
      block.add_sentence(ids);
    }
    block.end_document();
  }
  block.close();
  writer.add(block);
  writer.finish(0, "sample", {"sample"});
  return std::make_shared<const TokenStore>(folder);
}

}  // namespace onebit::corpus
