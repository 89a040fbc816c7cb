// The vocabulary of a model, and whether stores were made with it: ids of another one mean
// other words, which no loss shows at once.
#pragma once

#include <memory>
#include <string>

#include "onebit/corpus/prepare_options.h"
#include "onebit/corpus/store.h"
#include "onebit/text/casing.h"
#include "onebit/text/vocabulary.h"

namespace onebit::tasks {

// Whose words the ids of a store must mean.
struct VocabularyOwner {
  std::string what;  // "the model", "the training data"
  Path path;         // as `onebit prepare --vocab` takes it
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
};

// Errors: the store's vocabulary has other tokens (with the first id that differs), or its text was
// cased otherwise; both with the command that makes the store again.
void require_vocabulary_of(const VocabularyOwner& owner, const corpus::Store& store);

// The vocabulary and casing that `onebit prepare --vocab PATH` takes from a model folder,
// checkpoint or run, from a store, or from a tokenizer.json. Errors: none of these; a
// tokenizer that treats text as onebit's does not.
corpus::ModelVocabulary read_model_vocabulary(const Path& path);

}  // namespace onebit::tasks
