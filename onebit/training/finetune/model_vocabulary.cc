#include "onebit/training/finetune/model_vocabulary.h"

#include <algorithm>
#include <utility>

#include "onebit/data/batches/example_source.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {
namespace {

std::string token_at(const text::Vocabulary& vocabulary, int32_t id) {
  return id < vocabulary.size() ? quote(vocabulary.token(id)) : "no token";
}

const char* reads(text::Casing casing) {
  if (casing == text::Casing::kCased) return "as it is written";
  return casing == text::Casing::kUncased ? "lower-cased" : "lower-cased with its accents";
}

corpus::ModelVocabulary read_tokenizer_json(const Path& path) {
  formats::TokenizerFiles files = formats::read_tokenizer_with(path);
  corpus::ModelVocabulary found;
  found.tokens = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::from_parts(std::move(files.vocabulary), path.string()));
  if (files.config) found.casing = formats::casing_of(*files.config, path.string());
  found.place = path.string();
  return found;
}

text::Casing casing_shown_by(const text::Vocabulary& vocabulary) {
  return text::casing_of(vocabulary) == text::CasingEvidence::kCased ? text::Casing::kCased
                                                                     : text::Casing::kUncased;
}

}  // namespace

void require_vocabulary_of(const VocabularyOwner& owner, const corpus::Store& store) {
  const std::string remedy =
      fmt::format("prepare it again with `onebit prepare --vocab {}`", owner.path.string());
  const text::Vocabulary& theirs = *store.vocabulary();
  if (const auto found = text::difference(*owner.vocabulary, theirs)) {
    fail(
        "{}: was made with another vocabulary, not that of {} {}: id {} is {} there and {} in the "
        "store, {} of {} ids differ, so its ids mean other words; {}",
        store.folder().string(), owner.what, owner.path.string(), found->first_id,
        token_at(*owner.vocabulary, found->first_id), token_at(theirs, found->first_id), found->ids,
        std::max(owner.vocabulary->size(), theirs.size()), remedy);
  }
  require(store.casing() == owner.casing,
          "{}: its text was read {}, and {} {} reads text {}: words with capitals or accents would "
          "become pieces that it has never seen; {}",
          store.folder().string(), reads(store.casing()), owner.what, owner.path.string(),
          reads(owner.casing), remedy);
}

corpus::ModelVocabulary read_model_vocabulary(const Path& path) {
  if (std::filesystem::is_regular_file(path)) return read_tokenizer_json(path);
  if (corpus::is_token_store(path) || samples::is_sample_store(path)) {
    const auto store = batches::open_store(path);
    return {.tokens = store->vocabulary(), .casing = store->casing(), .place = path.string()};
  }
  const Path folder = training::find_model_folder(path);
  const training::ModelDescription description = training::read_model_description(folder);
  return {.tokens = description.vocabulary, .casing = description.casing, .place = folder.string()};
}

text::Tokenizer read_tokenizer(const Path& path, std::optional<text::Casing> casing) {
  if (std::filesystem::is_directory(path) || path.extension() == ".json") {
    const corpus::ModelVocabulary found = read_model_vocabulary(path);
    require(!casing || !found.tokens->pipeline(),
            "{}: its tokenizer is no WordPiece and has rules of its own for capitals and accents; "
            "leave out whether text is cased",
            found.place);
    if (!casing) casing = found.casing;
    return {found.tokens, casing ? *casing : casing_shown_by(*found.tokens)};
  }
  const auto tokens = std::make_shared<text::Vocabulary>(text::Vocabulary::load(path));
  return {tokens, casing ? *casing : casing_shown_by(*tokens)};
}

void take_vocabulary(const std::string& given, corpus::PrepareOptions& options) {
  const Path path = given;
  if (std::filesystem::is_directory(path) || path.extension() == ".json") {
    options.model_vocabulary = read_model_vocabulary(path);
  } else {
    options.vocabulary = path;
  }
}

}  // namespace onebit::finetune
