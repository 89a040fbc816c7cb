#include "onebit/data/samples/sample_manifest.h"

#include "onebit/data/samples/sample.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::samples {
namespace {

corpus::StoreKind sample_store() {
  return {.name = "sample store",
          .format = corpus::kSampleStoreFormat,
          .of_sources = "source_format",
          .version = kSampleStoreVersion,
          .made_of = "its files",
          .files = {kTokensName, kSequencesName, kPairsName, kMaskedName, kPositionsName,
                    kTargetsName}};
}

// In the order of the keys in the manifest.
struct Count {
  const char* key;
  uint64_t SampleManifest::*value;
};
constexpr Count kCounts[] = {{"samples", &SampleManifest::samples},
                             {"tokens", &SampleManifest::tokens},
                             {"masked", &SampleManifest::masked},
                             {"pairs", &SampleManifest::pairs},
                             {"labels", &SampleManifest::labels},
                             {"random_next", &SampleManifest::random_next},
                             {"longest_tokens", &SampleManifest::longest_tokens},
                             {"most_masked", &SampleManifest::most_masked},
                             {"replaced_by_mask", &SampleManifest::replaced_by_mask}};

void check_counts(const SampleManifest& manifest, const std::string& source) {
  constexpr uint64_t kMax = UINT64_MAX / 16;
  const bool sound = manifest.samples >= 1 && manifest.samples < kMax && manifest.tokens < kMax &&
                     manifest.masked < kMax && manifest.tokens >= manifest.samples &&
                     manifest.masked >= manifest.samples && manifest.pairs <= manifest.samples &&
                     (manifest.labels == 0 || manifest.labels == manifest.samples) &&
                     manifest.longest_tokens >= 1 &&
                     manifest.longest_tokens <= static_cast<uint64_t>(kMaxTokens) &&
                     manifest.most_masked >= 1 && manifest.most_masked < manifest.longest_tokens;
  require(sound, "{}: its counts are invalid: the manifest is damaged", source);
}

}  // namespace

Json manifest_to_json(const SampleManifest& manifest) {
  Json counts = Json::object();
  for (const Count& count : kCounts) counts[count.key] = manifest.*count.value;
  return corpus::manifest_of(sample_store(), manifest, counts);
}

SampleManifest manifest_from_json(const Json& json, const std::string& source) {
  SampleManifest manifest;
  JsonReader reader = corpus::read_head(json, source, sample_store(), manifest);
  for (const Count& count : kCounts) {
    manifest.*count.value = corpus::count_at(reader, count.key);
  }
  check_counts(manifest, source);
  reader.finish();
  return manifest;
}

}  // namespace onebit::samples
