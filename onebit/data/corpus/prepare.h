// Converts text to a token store, on all cores; memory does not depend on the size of the text.
#pragma once

#include <string>
#include <vector>

#include "onebit/data/corpus/prepare_options.h"
#include "onebit/data/corpus/store_manifest.h"

namespace onebit::corpus {

struct PrepareReport {
  StoreManifest manifest;
  std::vector<std::string> decisions;  // automatic choices, to be shown to the user
  uint64_t duplicate_tokens = 0;       // in documents dropped as duplicates
  uint64_t long_sentence_tokens = 0;   // in sentences of more than kLongSentenceTokens
  double seconds = 0;
  double megabytes_per_second = 0;  // text bytes per second of the tokenizing phase
};

// Writes to `<output>.partial`, renamed to `output` when everything is on disk: an interrupted run
// leaves nothing that looks finished. Errors (which leave nothing behind): missing, empty or
// damaged input, text that is not UTF-8 (path and byte offset), an invalid JSON line (path and
// line), no sentence in the whole input, a vocabulary without special tokens or of another casing,
// an existing output.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace onebit::corpus
