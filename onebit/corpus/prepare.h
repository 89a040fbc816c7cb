// Text to a token store, on all cores, in memory that does not depend on the size of the text.
#pragma once

#include <string>
#include <vector>

#include "onebit/corpus/prepare_options.h"
#include "onebit/corpus/store_manifest.h"

namespace onebit::corpus {

struct PrepareReport {
  StoreManifest manifest;
  std::vector<std::string> decisions;  // what was chosen automatically, for the user to read
  uint64_t duplicate_tokens = 0;       // in documents that were dropped
  double seconds = 0;
  double megabytes_per_second = 0;  // text bytes over the time of the tokenizing phase
};

// Works in `<output>.partial`, renamed to `output` when all is on the disk: an interrupted run
// leaves nothing that looks finished. Errors (and then no trace remains): missing, empty or damaged
// input, text that is not UTF-8 (path and byte offset), a bad JSON line (path and line), no
// sentence in all of the input, a vocabulary without special tokens or of another casing, an output
// that exists.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace onebit::corpus
