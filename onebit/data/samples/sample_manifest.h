// manifest.json of a sample store: its contents and the data to verify that it is complete.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/data/corpus/store_head.h"

namespace onebit::samples {

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

}  // namespace onebit::samples
