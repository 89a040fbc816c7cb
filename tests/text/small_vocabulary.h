// A vocabulary for tests: the special tokens and those that a test adds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/data/text/vocabulary.h"

namespace onebit::text {

// [PAD] [UNK] [CLS] [SEP] [MASK] have the ids 0 to 4, `tokens` follow from 5 on.
inline std::shared_ptr<const Vocabulary> small_vocabulary(const std::vector<std::string>& tokens) {
  std::vector<std::string> all = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  all.insert(all.end(), tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(Vocabulary::from_tokens(all, "test"));
}

}  // namespace onebit::text
