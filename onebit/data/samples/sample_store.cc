#include "onebit/data/samples/sample_store.h"

#include <algorithm>
#include <bit>

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

namespace {

static_assert(std::endian::native == std::endian::little, "sample stores are little-endian");

constexpr const char* kKind = "sample store";

SampleManifest open_manifest(const Path& folder) {
  const Json json = corpus::read_manifest(folder, kKind);
  return manifest_from_json(json, (folder / corpus::kManifestName).string());
}

}  // namespace

SampleStore::SampleStore(const Path& folder) : folder_(folder), manifest_(open_manifest(folder)) {
  vocabulary_ = std::make_shared<const text::Vocabulary>(manifest_.load_vocabulary(folder));
  const auto map = [&](const char* name, uint64_t numbers, uint64_t number_bytes) {
    return corpus::map_store_file(folder, manifest_.file(name), numbers * number_bytes, kKind);
  };
  const auto id_bytes = static_cast<uint64_t>(manifest_.token_size_bytes);
  token_file_ = map(kTokensName, manifest_.tokens, id_bytes);
  sequence_file_ = map(kSequencesName, manifest_.samples + 1, sizeof(uint64_t));
  pair_file_ = map(kPairsName, manifest_.samples, sizeof(uint32_t));
  masked_file_ = map(kMaskedName, manifest_.samples + 1, sizeof(uint64_t));
  position_file_ = map(kPositionsName, manifest_.masked, sizeof(uint16_t));
  target_file_ = map(kTargetsName, manifest_.masked, id_bytes);
  sequences_ = corpus::numbers_in<uint64_t>(sequence_file_);
  masked_ = corpus::numbers_in<uint64_t>(masked_file_);
  pairs_ = corpus::numbers_in<uint32_t>(pair_file_);
  positions_ = corpus::numbers_in<uint16_t>(position_file_);
  corpus::check_offsets(sequences_, manifest_.tokens, folder / kSequencesName, kKind);
  corpus::check_offsets(masked_, manifest_.masked, folder / kMaskedName, kKind);
}

std::vector<corpus::StoreFile> SampleStore::content_files() const {
  std::vector<corpus::StoreFile> files = manifest_.files;
  std::erase_if(files, [](const auto& file) { return file.name == corpus::kVocabularyName; });
  return files;
}

std::string SampleStore::counts() const {
  return fmt::format("{} samples, {} tokens, {} masked words, as chosen by their writer",
                     manifest_.samples, manifest_.tokens, manifest_.masked);
}

void SampleStore::verify() const {
  corpus::verify_files(folder_, manifest_.files, kKind);
}

void SampleStore::refuse(const char* name, uint64_t index) const {
  fail("{}: sample {} is invalid: the sample store is damaged; copy or prepare it again",
       (folder_ / name).string(), index);
}

void SampleStore::copy_ids(const MappedFile& file, uint64_t first, uint64_t count,
                           std::vector<int32_t>& ids) const {
  ids.resize(count);
  const auto copy = [&](const auto* from) { std::copy(from, from + count, ids.begin()); };
  if (manifest_.token_size_bytes == 2) {
    copy(corpus::numbers_in<uint16_t>(file).data() + first);
  } else {
    copy(corpus::numbers_in<int32_t>(file).data() + first);
  }
}

void SampleStore::read(uint64_t index, Sample& sample) const {
  ONEBIT_INVARIANT(index < samples());
  const auto length = static_cast<uint64_t>(this->length(index));
  const auto masked = static_cast<uint64_t>(this->masked(index));
  if (length > manifest_.longest_tokens) refuse(kSequencesName, index);
  if (masked > manifest_.most_masked) refuse(kMaskedName, index);
  copy_ids(token_file_, sequences_[index], length, sample.tokens);
  copy_ids(target_file_, masked_[index], masked, sample.masked_ids);
  const auto outside = [&](int32_t id) { return id < 0 || id >= manifest_.vocabulary_size; };
  if (std::any_of(sample.tokens.begin(), sample.tokens.end(), outside)) refuse(kTokensName, index);
  if (std::any_of(sample.masked_ids.begin(), sample.masked_ids.end(), outside)) {
    refuse(kTargetsName, index);
  }
  const auto positions = positions_.subspan(masked_[index], masked);
  sample.masked_positions.assign(positions.begin(), positions.end());
  int32_t least = 0;
  for (const int32_t position : sample.masked_positions) {
    if (position < least || static_cast<uint64_t>(position) >= length)
      refuse(kPositionsName, index);
    least = position + 1;
  }
  const uint32_t pair = pairs_[index], label = pair & 3u;
  sample.first_part = static_cast<int32_t>(pair >> 2);
  sample.next_sentence = label == 3 ? kNoLabel : static_cast<int32_t>(label);
  if (label == 2 || (label == 3) != (manifest_.labels == 0) || sample.first_part < 1 ||
      static_cast<uint64_t>(sample.first_part) > length) {
    refuse(kPairsName, index);
  }
}

bool is_sample_store(const Path& folder) {
  return corpus::store_format(folder) == corpus::kSampleStoreFormat;
}

SampleStatistics statistics_of(const SampleStore& store) {
  const int32_t unknown = store.vocabulary()->unknown_id(), mask = store.vocabulary()->mask_id();
  SampleStatistics found;
  corpus::LengthCounter tokens, masked;
  Sample sample;
  for (uint64_t index = 0; index < store.samples(); ++index) {
    store.read(index, sample);
    tokens.add(sample.tokens.size());
    masked.add(sample.masked_ids.size());
    found.unknown_tokens +=
        static_cast<uint64_t>(std::count(sample.tokens.begin(), sample.tokens.end(), unknown));
    for (size_t i = 0; i < sample.masked_ids.size(); ++i) {
      const int32_t shown = sample.tokens[sample.masked_positions[i]];
      if (shown == sample.masked_ids[i]) {
        ++found.kept;
      } else if (shown != mask) {
        ++found.replaced;
      }
    }
  }
  found.sample_tokens = tokens.statistics();
  found.sample_masked = masked.statistics();
  return found;
}

namespace {

const Path& free_output(const Path& output, bool overwrite) {
  corpus::require_free_output(output, overwrite);
  return output;
}

}  // namespace

SampleWriter::Files::Files(const Path& folder)
    : tokens(folder / kTokensName),
      sequences(folder / kSequencesName),
      pairs(folder / kPairsName),
      masked(folder / kMaskedName),
      positions(folder / kPositionsName),
      targets(folder / kTargetsName) {
  sequences.write_number(uint64_t{0});
  masked.write_number(uint64_t{0});
}

SampleWriter::SampleWriter(const Path& output, const text::Vocabulary& vocabulary,
                           text::Casing casing, bool overwrite)
    : folder_(free_output(output, overwrite), overwrite ? Existing::kReplace : Existing::kRefuse),
      mask_id_(vocabulary.mask_id()) {
  manifest_.casing = casing;
  manifest_.save_vocabulary(vocabulary, folder_.path());
  files_.emplace(folder_.path());
}

// Removes unfinished files before their folder.
SampleWriter::~SampleWriter() {
  files_.reset();
}

void SampleWriter::write_ids(corpus::StoreFileWriter& file, const std::vector<int32_t>& ids) {
  if (manifest_.token_size_bytes == 4) return file.write(ids);
  short_numbers_.assign(ids.begin(), ids.end());
  file.write(short_numbers_);
}

void SampleWriter::add(const Sample& sample, const std::string& place) {
  const bool labelled = sample.next_sentence != kNoLabel;
  require(manifest_.samples == 0 || labelled == (manifest_.labels > 0),
          "{}: has {}next_sentence_labels, but earlier samples have {}: prepare the two kinds "
          "separately",
          place, labelled ? "" : "no ", labelled ? "none" : "them");
  write_ids(files_->tokens, sample.tokens);
  write_ids(files_->targets, sample.masked_ids);
  short_numbers_.assign(sample.masked_positions.begin(), sample.masked_positions.end());
  files_->positions.write(short_numbers_);
  const uint32_t label = labelled ? static_cast<uint32_t>(sample.next_sentence) : 3;
  files_->pairs.write_number(static_cast<uint32_t>(sample.first_part) << 2 | label);
  const uint64_t length = sample.tokens.size(), masked = sample.masked_ids.size();
  ++manifest_.samples;
  files_->sequences.write_number(manifest_.tokens += length);
  files_->masked.write_number(manifest_.masked += masked);
  manifest_.pairs += static_cast<uint64_t>(sample.first_part) < length ? 1 : 0;
  manifest_.labels += labelled ? 1 : 0;
  manifest_.random_next += sample.next_sentence == 1 ? 1 : 0;
  manifest_.longest_tokens = std::max(manifest_.longest_tokens, length);
  manifest_.most_masked = std::max(manifest_.most_masked, masked);
  for (const int32_t position : sample.masked_positions) {
    if (sample.tokens[position] == mask_id_) ++manifest_.replaced_by_mask;
  }
}

SampleManifest SampleWriter::finish(const std::string& format,
                                    const std::vector<std::string>& sources) {
  require(manifest_.samples > 0, "{}{}: no example was found",
          sources.empty() ? "the input" : sources.front(),
          sources.size() > 1 ? fmt::format(" and {} more", sources.size() - 1) : "");
  manifest_.format = format;
  manifest_.source_count = sources.size();
  manifest_.sources.assign(
      sources.begin(),
      sources.begin() + static_cast<ptrdiff_t>(std::min(sources.size(), corpus::kSourcesListed)));
  for (corpus::StoreFileWriter* file : {&files_->tokens, &files_->sequences, &files_->pairs,
                                        &files_->masked, &files_->positions, &files_->targets}) {
    manifest_.files.push_back(file->finish());
  }
  manifest_.add_vocabulary_files(folder_.path());
  write_file_atomically(folder_.path() / corpus::kManifestName,
                        json_text(manifest_to_json(manifest_), 2) + "\n");
  folder_.finish(corpus::kManifestName);
  return manifest_;
}

}  // namespace onebit::samples
