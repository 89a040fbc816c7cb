// Text to a token store, on all cores, in memory that does not depend on the size of the text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/data/store_manifest.h"
#include "onebit/data/text_format.h"
#include "onebit/text/casing.h"

namespace onebit::data {

struct PrepareProgress {
  std::string phase;                // "learning the vocabulary" or "tokenizing"
  uint64_t done_bytes = 0;          // of total_bytes, as the files lie on the disk
  uint64_t total_bytes = 0;         // 0 when unknown (standard input)
  uint64_t text_bytes = 0;          // unpacked text so far
  double seconds = 0;               // since the phase began
  double megabytes_per_second = 0;  // of text, 10^6 bytes
  double seconds_left = -1;         // -1 when unknown
};

struct PrepareOptions {
  std::vector<Path> inputs;  // files, folders, or "-" for standard input
  Path output;
  std::optional<Path> vocabulary;          // vocab.txt; exactly one of this and
  std::optional<int32_t> vocabulary_size;  // the size of one to be learnt from the text
  // Absent: uncased, or for a given vocabulary cased when its tokens hold capitals.
  std::optional<text::Casing> casing;
  TextFormat format = TextFormat::kAuto;
  std::string locale = "en";                             // of sentence splitting
  int threads = 0;                                       // 0: all processors
  bool overwrite = false;                                // replace a finished store
  std::function<void(const PrepareProgress&)> progress;  // called about once a second
};

struct PrepareReport {
  StoreManifest manifest;
  std::vector<std::string> decisions;  // what was chosen automatically, for the user to read
  double seconds = 0;
  double megabytes_per_second = 0;  // text bytes over the time of the tokenizing phase
};

// Works in `<output>.partial`, renamed to `output` when all is on the disk: an interrupted run
// leaves nothing that looks finished. Errors (and then no trace remains): missing, empty or damaged
// input, text that is not UTF-8 (path and byte offset), a bad JSON line (path and line), no
// sentence in all of the input, a vocabulary without special tokens or of another casing, an output
// that exists.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace onebit::data
