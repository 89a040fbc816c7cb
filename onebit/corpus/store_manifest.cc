#include "onebit/corpus/store_manifest.h"

#include "onebit/base/error.h"

namespace onebit::corpus {

Json manifest_to_json(const StoreManifest& manifest) {
  const bool cased = manifest.casing == text::Casing::kCased;
  Json json = {{"format", kTokenStoreFormat},
               {"version", kStoreVersion},
               {"token_type", manifest.token_size_bytes == 2 ? "u16" : "u32"},
               {"tokens", manifest.tokens},
               {"sentences", manifest.sentences},
               {"documents", manifest.documents},
               {"text_bytes", manifest.text_bytes},
               {"text_format", manifest.format},
               {"casing", cased ? "cased" : "uncased"},
               {"vocabulary_size", manifest.vocabulary_size},
               {"vocabulary_checksum", fmt::format("{:08x}", manifest.vocabulary_checksum)},
               {"files", files_to_json(manifest.files)},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources}};
  if (manifest.duplicate_documents) json["duplicate_documents"] = *manifest.duplicate_documents;
  return json;
}

StoreManifest manifest_from_json(const Json& json, const std::string& source) {
  const bool ours =
      json.is_object() && json.contains("format") && json["format"] == kTokenStoreFormat;
  require(ours, "{}: is not the manifest of a token store", source);
  JsonReader reader(json, source, "");
  reader.accept("format");
  const int64_t version = reader.integer("version", 0);
  require(version == kStoreVersion,
          "{}: the store has version {}, this program reads version {}: prepare the text again",
          source, version, kStoreVersion);
  StoreManifest manifest;
  manifest.token_size_bytes = reader.choice("token_type", "", {"u16", "u32"}) == "u16" ? 2 : 4;
  manifest.tokens = count_at(reader, "tokens");
  manifest.sentences = count_at(reader, "sentences");
  manifest.documents = count_at(reader, "documents");
  manifest.text_bytes = count_at(reader, "text_bytes");
  if (reader.has("duplicate_documents")) {
    manifest.duplicate_documents = count_at(reader, "duplicate_documents");
  }
  manifest.format = reader.text("text_format", "");
  const bool cased = reader.choice("casing", "", {"cased", "uncased"}) == "cased";
  manifest.casing = cased ? text::Casing::kCased : text::Casing::kUncased;
  manifest.vocabulary_size = vocabulary_size_at(reader);
  manifest.vocabulary_checksum = checksum_at(reader, "vocabulary_checksum");
  manifest.files = files_from_json(reader.object("files"),
                                   {kTokensName, kSentencesName, kDocumentsName, kVocabularyName});
  manifest.source_count = count_at(reader, "source_count");
  manifest.sources = sources_at(reader);
  reader.finish();
  return manifest;
}

}  // namespace onebit::corpus
