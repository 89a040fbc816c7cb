// Statistics of the samples in a store: lengths, masked words, labels.
#pragma once

#include <cstdint>

#include "onebit/data/corpus/length_counter.h"
#include "onebit/data/samples/sample_store.h"

namespace onebit::samples {

struct SampleStatistics {
  uint64_t unknown_tokens = 0;      // [UNK]
  uint64_t kept = 0, replaced = 0;  // masked words left unchanged, or replaced by another word
  corpus::LengthStatistics sample_tokens, sample_masked;
};

// Reads the whole store. Error: an invalid sample.
SampleStatistics statistics_of(const SampleStore& store);

}  // namespace onebit::samples
