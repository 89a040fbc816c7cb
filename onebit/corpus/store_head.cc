#include "onebit/corpus/store_head.h"

#include "onebit/base/error.h"
#include "onebit/base/json.h"

namespace onebit::corpus {

Json manifest_of(const StoreKind& kind, const StoreHead& head, const Json& counts) {
  Json json = {{"format", kind.format},
               {"version", kind.version},
               {"token_type", head.token_size_bytes == 2 ? "u16" : "u32"}};
  json.update(counts);
  json.update({{kind.of_sources, head.format},
               {"casing", name_of(head.casing)},
               {"vocabulary_size", head.vocabulary_size},
               {"vocabulary_checksum", fmt::format("{:08x}", head.vocabulary_checksum)},
               {"files", files_to_json(head.files)},
               {"source_count", head.source_count},
               {"sources", head.sources}});
  return json;
}

JsonReader read_head(const Json& json, const std::string& source, const StoreKind& kind,
                     StoreHead& head) {
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kind.format;
  require(ours, "{}: is not the manifest of a {}", source, kind.name);
  JsonReader reader(json, source, "");
  reader.accept("format");
  const int64_t version = reader.integer("version", 0);
  require(version == kind.version,
          "{}: the store has version {}, this program reads version {}: prepare {} again", source,
          version, kind.version, kind.made_of);
  head.token_size_bytes = reader.choice("token_type", "", {"u16", "u32"}) == "u16" ? 2 : 4;
  head.format = reader.text(kind.of_sources, "");
  const bool cased = reader.choice("casing", "", {"cased", "uncased"}) == "cased";
  head.casing = cased ? text::Casing::kCased : text::Casing::kUncased;
  head.vocabulary_size = vocabulary_size_at(reader);
  head.vocabulary_checksum = checksum_at(reader, "vocabulary_checksum");
  std::vector<std::string> files = kind.files;
  files.emplace_back(kVocabularyName);
  head.files = files_from_json(reader.object("files"), files);
  head.source_count = count_at(reader, "source_count");
  head.sources = sources_at(reader);
  return reader;
}

}  // namespace onebit::corpus
