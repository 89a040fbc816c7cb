// The vocabulary of a model, and whether stores were tokenized with it: ids of another vocabulary
// refer to other words, which no loss shows at once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/store.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/data/text/vocabulary.h"

namespace onebit::finetune {

// The owner of the vocabulary to which the ids of a store must refer.
struct VocabularyOwner {
  std::string what;  // "the model", "the training data"
  Path path;         // a value for `onebit prepare --vocab`
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
};

// Errors: the store's vocabulary has other tokens (reports the first id that differs), or its text
// was cased differently, both with the command that recreates the store.
void require_vocabulary_of(const VocabularyOwner& owner, const corpus::Store& store);

// The vocabulary and casing that `onebit prepare --vocab PATH` takes from a model folder,
// checkpoint or run, from a store, or from a tokenizer.json. Errors: none of these, or a tokenizer
// that processes text differently from onebit's.
corpus::ModelVocabulary read_model_vocabulary(const Path& path);

// The value of --vocab: sets options.vocabulary for a vocab.txt, or options.model_vocabulary for a
// model folder, run, store or tokenizer.json. Throws the errors of read_model_vocabulary().
void take_vocabulary(const std::string& given, corpus::PrepareOptions& options);

// The tokenizer of a vocab.txt, or of what read_model_vocabulary() reads. An absent casing is the
// model's, or else the casing that the words show. Error also: a casing for a tokenizer other than
// WordPiece.
text::Tokenizer read_tokenizer(const Path& path, std::optional<text::Casing> casing);

}  // namespace onebit::finetune
