// Determines vocabulary and casing for tokenizing text: given, or learned from the text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/data/corpus/input_files.h"
#include "onebit/data/corpus/prepare.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::corpus {

struct ChosenVocabulary {
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
  std::vector<std::string> decisions;  // to be shown to the user
};

// options.threads must be at least 1. The files of a learned tokenizer that is not WordPiece are
// left in `folder`. Errors: as listed at prepare().
ChosenVocabulary choose_vocabulary(const PrepareOptions& options,
                                   const std::vector<InputFile>& files, const Path& folder);

}  // namespace onebit::corpus
