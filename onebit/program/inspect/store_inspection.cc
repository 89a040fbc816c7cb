#include "onebit/program/inspect/store_inspection.h"

#include "onebit/data/corpus/store_statistics.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/samples/sample_statistics.h"
#include "onebit/data/text/casing.h"
#include "onebit/ground/base/json.h"

namespace onebit::inspect {
namespace {

Json lengths_to_json(const corpus::LengthStatistics& lengths) {
  return {{"mean", lengths.mean}, {"median", lengths.median}, {"longest", lengths.longest}};
}

// [{"name": "4 to 7", "count": 12}, ...], without the empty ends.
Json histogram_to_json(const corpus::LengthStatistics& lengths) {
  Json bins = Json::array();
  for (size_t bin = 0; bin < lengths.histogram.size(); ++bin) {
    const uint64_t count = lengths.histogram[bin], from = uint64_t{1} << bin;
    if (count == 0 && bins.empty()) continue;
    bins.push_back({{"name", bin == 0 ? "1" : fmt::format("{} to {}", from, 2 * from - 1)},
                    {"count", count},
                    {"from", from}});
  }
  return bins;
}

Json token_statistics(const corpus::TokenStore& store) {
  const corpus::StoreStatistics found = corpus::statistics_of(store);
  return {{"kind", "statistics"},
          {"path", store.folder().string()},
          {"unknown_tokens", found.unknown_tokens},
          {"unknown_share",
           static_cast<double>(found.unknown_tokens) / static_cast<double>(store.tokens())},
          {"tokens_in_sentences_over_512", found.long_sentence_tokens},
          {"share_in_sentences_over_512",
           static_cast<double>(found.long_sentence_tokens) / static_cast<double>(store.tokens())},
          {"sentence_tokens", lengths_to_json(found.sentence_tokens)},
          {"document_tokens", lengths_to_json(found.document_tokens)},
          {"document_sentences", lengths_to_json(found.document_sentences)},
          {"sentences_of_tokens", histogram_to_json(found.sentence_tokens)},
          {"documents_of_tokens", histogram_to_json(found.document_tokens)}};
}

Json list_of_files(const std::vector<corpus::StoreFile>& files) {
  Json list = Json::array();
  for (const corpus::StoreFile& file : files) {
    list.push_back({{"name", file.name},
                    {"size_bytes", file.size_bytes},
                    {"crc32", fmt::format("{:08x}", file.crc32)}});
  }
  return list;
}

Json vocabulary_to_json(const corpus::Store& store) {
  return {{"size", store.vocabulary()->size()},
          {"casing", name_of(store.casing())},
          {"checksum", fmt::format("{:08x}", store.vocabulary()->checksum())}};
}

Json inspect_token_store(const Path& path, const InspectOptions& options) {
  const corpus::TokenStore store(path);
  const corpus::StoreManifest& manifest = store.manifest();
  Json json = {{"kind", "token_store"},
               {"path", path.string()},
               {"version", corpus::kStoreVersion},
               {"documents", manifest.documents},
               {"sentences", manifest.sentences},
               {"tokens", manifest.tokens},
               {"vocabulary", vocabulary_to_json(store)},
               {"token_size_bytes", manifest.token_size_bytes},
               {"text_bytes", manifest.text_bytes},
               {"format", manifest.format},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources}};
  json["files"] = list_of_files(manifest.files);
  json["duplicate_documents"] =
      manifest.duplicate_documents ? Json(*manifest.duplicate_documents) : Json();
  if (options.verify) store.verify();
  json["verified"] = options.verify;
  json["statistics"] = options.statistics ? token_statistics(store) : Json();
  return json;
}

Json sample_statistics(const samples::SampleStore& store) {
  const samples::SampleStatistics found = samples::statistics_of(store);
  const auto share = [](uint64_t part, uint64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  return {{"kind", "sample_statistics"},
          {"path", store.folder().string()},
          {"unknown_tokens", found.unknown_tokens},
          {"unknown_share", share(found.unknown_tokens, store.tokens())},
          {"masked_share", share(store.manifest().masked, store.tokens())},
          {"masked_kept_share", share(found.kept, store.manifest().masked)},
          {"masked_replaced_share", share(found.replaced, store.manifest().masked)},
          {"sample_tokens", lengths_to_json(found.sample_tokens)},
          {"sample_masked", lengths_to_json(found.sample_masked)},
          {"samples_of_tokens", histogram_to_json(found.sample_tokens)}};
}

Json inspect_sample_store(const Path& path, const InspectOptions& options) {
  const samples::SampleStore store(path);
  const samples::SampleManifest& manifest = store.manifest();
  Json json = {{"kind", "sample_store"},
               {"path", path.string()},
               {"version", samples::kSampleStoreVersion},
               {"samples", manifest.samples},
               {"tokens", manifest.tokens},
               {"masked", manifest.masked},
               {"replaced_by_mask", manifest.replaced_by_mask},
               {"pairs", manifest.pairs},
               {"next_sentence_labels", manifest.labels},
               {"random_next", manifest.random_next},
               {"longest_tokens", manifest.longest_tokens},
               {"most_masked", manifest.most_masked},
               {"vocabulary", vocabulary_to_json(store)},
               {"token_size_bytes", manifest.token_size_bytes},
               {"format", manifest.format},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources},
               {"files", list_of_files(manifest.files)}};
  if (options.verify) store.verify();
  json["verified"] = options.verify;
  json["statistics"] = options.statistics ? sample_statistics(store) : Json();
  return json;
}

}  // namespace

bool looks_like_store(const Path& path) {
  return !corpus::store_format(path).empty() ||
         std::filesystem::exists(path / corpus::kTokensName) ||
         std::filesystem::exists(path / corpus::kManifestName);
}

Json inspect_store(const Path& path, const InspectOptions& options) {
  return samples::is_sample_store(path) ? inspect_sample_store(path, options)
                                        : inspect_token_store(path, options);
}

}  // namespace onebit::inspect
