#include "onebit/data/corpus/store_manifest.h"

#include "onebit/ground/base/json.h"

namespace onebit::corpus {
namespace {

StoreKind token_store() {
  return {.name = "token store",
          .format = kTokenStoreFormat,
          .of_sources = "text_format",
          .version = kStoreVersion,
          .made_of = "the text",
          .files = {kTokensName, kSentencesName, kDocumentsName}};
}

}  // namespace

Json manifest_to_json(const StoreManifest& manifest) {
  Json json = manifest_of(token_store(), manifest,
                          {{"tokens", manifest.tokens},
                           {"sentences", manifest.sentences},
                           {"documents", manifest.documents},
                           {"text_bytes", manifest.text_bytes}});
  if (manifest.duplicate_documents) json["duplicate_documents"] = *manifest.duplicate_documents;
  return json;
}

StoreManifest manifest_from_json(const Json& json, const std::string& source) {
  StoreManifest manifest;
  JsonReader reader = read_head(json, source, token_store(), manifest);
  manifest.tokens = count_at(reader, "tokens");
  manifest.sentences = count_at(reader, "sentences");
  manifest.documents = count_at(reader, "documents");
  manifest.text_bytes = count_at(reader, "text_bytes");
  if (reader.has("duplicate_documents")) {
    manifest.duplicate_documents = count_at(reader, "duplicate_documents");
  }
  reader.finish();
  return manifest;
}

}  // namespace onebit::corpus
