// The options of `onebit prepare`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/corpus/progress_meter.h"
#include "onebit/corpus/text_format.h"
#include "onebit/text/casing.h"

namespace onebit::corpus {

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

}  // namespace onebit::corpus
