#include "onebit/corpus/store_manifest.h"

#include <algorithm>

#include "onebit/base/error.h"

namespace onebit::corpus {
namespace {

constexpr const char* kFormatName = "onebit token store";

uint64_t count_at(JsonReader& reader, const std::string& key) {
  const int64_t value = reader.integer(key, -1);
  require(value >= 0, "{} must be a number that is not negative", reader.place(key));
  return static_cast<uint64_t>(value);
}

uint32_t checksum_at(JsonReader& reader, const std::string& key) {
  const std::string text = reader.text(key, "");
  size_t used = 0;
  unsigned long value = 0;
  try {
    value = std::stoul(text, &used, 16);
  } catch (const std::logic_error&) {
    used = 0;
  }
  require(text.size() == 8 && used == 8, "{} must be 8 hexadecimal digits", reader.place(key));
  return static_cast<uint32_t>(value);
}

std::vector<StoreFile> files_from_json(JsonReader reader) {
  std::vector<StoreFile> files;
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName, kVocabularyName}) {
    JsonReader file = reader.object(name);
    files.push_back({name, count_at(file, "size_bytes"), checksum_at(file, "crc32")});
    file.finish();
  }
  reader.finish();
  return files;
}

}  // namespace

const StoreFile& StoreManifest::file(const std::string& name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const StoreFile& each) { return each.name == name; });
  ONEBIT_INVARIANT(found != files.end());
  return *found;
}

Json manifest_to_json(const StoreManifest& manifest) {
  Json files = Json::object();
  for (const StoreFile& file : manifest.files) {
    files[file.name] = {{"size_bytes", file.size_bytes},
                        {"crc32", fmt::format("{:08x}", file.crc32)}};
  }
  const bool cased = manifest.casing == text::Casing::kCased;
  Json json = {{"format", kFormatName},
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
               {"files", files},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources}};
  if (manifest.duplicate_documents) json["duplicate_documents"] = *manifest.duplicate_documents;
  return json;
}

StoreManifest manifest_from_json(const Json& json, const std::string& source) {
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kFormatName;
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
  const uint64_t size = count_at(reader, "vocabulary_size");
  require(size >= 1 && size <= INT32_MAX, "{} is {}: no vocabulary has that size",
          reader.place("vocabulary_size"), size);
  manifest.vocabulary_size = static_cast<int32_t>(size);
  manifest.vocabulary_checksum = checksum_at(reader, "vocabulary_checksum");
  manifest.files = files_from_json(reader.object("files"));
  manifest.source_count = count_at(reader, "source_count");
  const Json& sources = reader.raw("sources");
  for (const Json& each : sources) {
    require(each.is_string(), "{} must be a list of paths", reader.place("sources"));
    manifest.sources.push_back(each.get<std::string>());
  }
  reader.finish();
  return manifest;
}

}  // namespace onebit::corpus
