// Pre-training examples as their writer drew them, memory-mapped. A folder with
//   tokens.bin     inputs of the model: ids, u16 when the vocabulary has at most 65536 tokens,
//                  else u32; no padding
//   sequences.bin  u64 [samples + 1], offsets into tokens; no sample is empty
//   pairs.bin      u32 [samples], tokens of the first text with [CLS] and [SEP], times 4, plus the
//                  next-sentence label (0, 1), or 3 if there is none
//   masked.bin     u64 [samples + 1], offsets into the next two; every sample has masked words
//   positions.bin  u16 [masked], ascending in each sample
//   targets.bin    ids [masked], the original tokens
//   vocab.txt      the vocabulary, or the files of another tokenizer than WordPiece
//   manifest.json  version, counts, casing, checksums, sources
// All numbers are little-endian.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/corpus/store.h"
#include "onebit/data/corpus/store_manifest.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/samples/sample.h"
#include "onebit/data/text/casing.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::samples {

// manifest.json of a sample store: its contents and the data to verify that it is complete.
inline constexpr int64_t kSampleStoreVersion = 1;
inline constexpr const char* kTokensName = "tokens.bin";
inline constexpr const char* kSequencesName = "sequences.bin";
inline constexpr const char* kPairsName = "pairs.bin";
inline constexpr const char* kMaskedName = "masked.bin";
inline constexpr const char* kPositionsName = "positions.bin";
inline constexpr const char* kTargetsName = "targets.bin";

struct SampleManifest : corpus::StoreHead {
  uint64_t samples = 0, tokens = 0, masked = 0;
  uint64_t pairs = 0;             // samples with a second text
  uint64_t labels = 0;            // samples with a next-sentence label: none or all
  uint64_t random_next = 0;       // samples with label 1
  uint64_t longest_tokens = 0;    // longest sample
  uint64_t most_masked = 0;       // most masked words in a sample
  uint64_t replaced_by_mask = 0;  // masked words replaced by [MASK]
};

Json manifest_to_json(const SampleManifest& manifest);
// Errors with `source` and the key: not a store's manifest, another version, a missing or mistyped
// key, counts that contradict each other.
SampleManifest manifest_from_json(const Json& json, const std::string& source);

// Thread-safe for reading.
class SampleStore : public corpus::Store {
 public:
  // Errors, each with the path: not a store, an unfinished one, another version, a truncated file,
  // offsets out of order, a vocabulary different from the one it was made with.
  explicit SampleStore(const Path& folder);

  uint64_t samples() const { return manifest_.samples; }
  const SampleManifest& manifest() const { return manifest_; }

  uint64_t tokens() const override { return manifest_.tokens; }
  const Path& folder() const override { return folder_; }
  std::shared_ptr<const text::Vocabulary> vocabulary() const override { return vocabulary_; }
  text::Casing casing() const override { return manifest_.casing; }
  std::vector<corpus::StoreFile> content_files() const override;
  std::string counts() const override;
  void verify() const override;

  // The number of tokens of a sample, and of its masked words.
  int64_t length(uint64_t index) const {
    return static_cast<int64_t>(sequences_[index + 1] - sequences_[index]);
  }
  int64_t masked(uint64_t index) const {
    return static_cast<int64_t>(masked_[index + 1] - masked_[index]);
  }
  // Reads a sample. Error: the sample is invalid (a damaged store).
  void read(uint64_t index, Sample& sample) const;

 private:
  // Copies `count` ids of a file from `first` on.
  void copy_ids(const MappedFile& file, uint64_t first, uint64_t count,
                std::vector<int32_t>& ids) const;
  [[noreturn]] void refuse(const char* name, uint64_t index) const;

  Path folder_;
  SampleManifest manifest_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
  MappedFile token_file_, sequence_file_, pair_file_, masked_file_, position_file_, target_file_;
  std::span<const uint64_t> sequences_, masked_;
  std::span<const uint32_t> pairs_;
  std::span<const uint16_t> positions_;
};

// Whether `folder` has the manifest of a sample store. Never throws.
bool is_sample_store(const Path& folder);

// Statistics of the samples in a store: lengths, masked words, labels.
struct SampleStatistics {
  uint64_t unknown_tokens = 0;      // [UNK]
  uint64_t kept = 0, replaced = 0;  // masked words left unchanged, or replaced by another word
  corpus::LengthStatistics sample_tokens, sample_masked;
};

// Reads the whole store. Error: an invalid sample.
SampleStatistics statistics_of(const SampleStore& store);

// Writes a sample store in a temporary folder and renames it when it is complete.
class SampleWriter {
 public:
  // Creates the folder `<output>.partial` (base/partial_file.h). Errors: `output` is a store and
  // `overwrite` is false, or is anything else but an empty folder, or another process is writing
  // it.
  SampleWriter(const Path& output, const text::Vocabulary& vocabulary, text::Casing casing,
               bool overwrite);
  // Removes the folder unless finish() has completed.
  ~SampleWriter();
  SampleWriter(const SampleWriter&) = delete;
  SampleWriter& operator=(const SampleWriter&) = delete;

  // Adds a sample from SampleChecker. Errors name `place`. Error: the sample has a label and the
  // first one had none, or vice versa.
  void add(const Sample& sample, const std::string& place);
  uint64_t samples() const { return manifest_.samples; }
  // Completes the manifest, syncs and renames. Error: no sample at all.
  SampleManifest finish(const std::string& format, const std::vector<std::string>& sources);

 private:
  // The files in the order of the manifest.
  struct Files {
    explicit Files(const Path& folder);

    corpus::StoreFileWriter tokens, sequences, pairs, masked, positions, targets;
  };

  void write_ids(corpus::StoreFileWriter& file, const std::vector<int32_t>& ids);

  PartialFolder folder_;
  SampleManifest manifest_;
  int32_t mask_id_;
  std::optional<Files> files_;
  std::vector<uint16_t> short_numbers_;
};

}  // namespace onebit::samples
