#include "onebit/samples/sample_manifest.h"

#include "onebit/base/error.h"
#include "onebit/samples/sample.h"

namespace onebit::samples {
namespace {

void check_counts(const SampleManifest& manifest, const std::string& source) {
  constexpr uint64_t kMost = UINT64_MAX / 16;
  const bool sound = manifest.samples >= 1 && manifest.samples < kMost && manifest.tokens < kMost &&
                     manifest.masked < kMost && manifest.tokens >= manifest.samples &&
                     manifest.masked >= manifest.samples && manifest.pairs <= manifest.samples &&
                     (manifest.labels == 0 || manifest.labels == manifest.samples) &&
                     manifest.longest_tokens >= 1 &&
                     manifest.longest_tokens <= static_cast<uint64_t>(kMostTokens) &&
                     manifest.most_masked >= 1 && manifest.most_masked < manifest.longest_tokens;
  require(sound, "{}: its counts cannot be right: the manifest is damaged", source);
}

}  // namespace

Json manifest_to_json(const SampleManifest& manifest) {
  return {{"format", corpus::kSampleStoreFormat},
          {"version", kSampleStoreVersion},
          {"token_type", manifest.token_size_bytes == 2 ? "u16" : "u32"},
          {"samples", manifest.samples},
          {"tokens", manifest.tokens},
          {"masked", manifest.masked},
          {"pairs", manifest.pairs},
          {"labels", manifest.labels},
          {"random_next", manifest.random_next},
          {"longest_tokens", manifest.longest_tokens},
          {"most_masked", manifest.most_masked},
          {"replaced_by_mask", manifest.replaced_by_mask},
          {"casing", manifest.casing == text::Casing::kCased ? "cased" : "uncased"},
          {"vocabulary_size", manifest.vocabulary_size},
          {"vocabulary_checksum", fmt::format("{:08x}", manifest.vocabulary_checksum)},
          {"source_format", manifest.format},
          {"files", corpus::files_to_json(manifest.files)},
          {"source_count", manifest.source_count},
          {"sources", manifest.sources}};
}

SampleManifest manifest_from_json(const Json& json, const std::string& source) {
  const bool ours =
      json.is_object() && json.contains("format") && json["format"] == corpus::kSampleStoreFormat;
  require(ours, "{}: is not the manifest of a sample store", source);
  JsonReader reader(json, source, "");
  reader.accept("format");
  const int64_t version = reader.integer("version", 0);
  require(version == kSampleStoreVersion,
          "{}: the store has version {}, this program reads version {}: prepare its files again",
          source, version, kSampleStoreVersion);
  SampleManifest manifest;
  manifest.token_size_bytes = reader.choice("token_type", "", {"u16", "u32"}) == "u16" ? 2 : 4;
  struct Count {
    const char* key;
    uint64_t SampleManifest::*value;
  };
  for (const Count& count : {Count{"samples", &SampleManifest::samples},
                             {"tokens", &SampleManifest::tokens},
                             {"masked", &SampleManifest::masked},
                             {"pairs", &SampleManifest::pairs},
                             {"labels", &SampleManifest::labels},
                             {"random_next", &SampleManifest::random_next},
                             {"longest_tokens", &SampleManifest::longest_tokens},
                             {"most_masked", &SampleManifest::most_masked},
                             {"replaced_by_mask", &SampleManifest::replaced_by_mask},
                             {"source_count", &SampleManifest::source_count}}) {
    manifest.*count.value = corpus::count_at(reader, count.key);
  }
  check_counts(manifest, source);
  const bool cased = reader.choice("casing", "", {"cased", "uncased"}) == "cased";
  manifest.casing = cased ? text::Casing::kCased : text::Casing::kUncased;
  manifest.vocabulary_size = corpus::vocabulary_size_at(reader);
  manifest.vocabulary_checksum = corpus::checksum_at(reader, "vocabulary_checksum");
  manifest.format = reader.text("source_format", "");
  manifest.files = corpus::files_from_json(
      reader.object("files"), {kTokensName, kSequencesName, kPairsName, kMaskedName, kPositionsName,
                               kTargetsName, corpus::kVocabularyName});
  manifest.sources = corpus::sources_at(reader);
  reader.finish();
  return manifest;
}

}  // namespace onebit::samples
