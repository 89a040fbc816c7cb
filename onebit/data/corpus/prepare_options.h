// The options of `onebit prepare`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/progress_meter.h"
#include "onebit/data/corpus/text_format.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/file.h"

namespace onebit::corpus {

// The vocabulary of a model or of another store.
struct ModelVocabulary {
  std::shared_ptr<const text::Vocabulary> tokens;
  std::optional<text::Casing> casing;  // of the text that it is meant for, if known
  std::string place;                   // for messages
};

struct PrepareOptions {
  std::vector<Path> inputs;  // files, folders, or "-" for standard input
  Path output;
  // Exactly one of these three is set.
  std::optional<Path> vocabulary;  // vocab.txt
  std::optional<ModelVocabulary> model_vocabulary;
  std::optional<int32_t> vocabulary_size;  // of a vocabulary to be learned from the text
  // Absent: the model's, or uncased, or for a vocab.txt cased if its tokens contain capitals.
  std::optional<text::Casing> casing;
  TextFormat format = TextFormat::kAuto;
  std::string locale = "en";             // for sentence splitting
  int threads = 0;                       // 0: all processors
  bool overwrite = false;                // replace a finished store
  bool drop_duplicates = false;          // keep only the first of documents with equal tokens
  LeftOut left_out = LeftOut::kMissing;  // of the records of JSON lines
  std::function<void(const PrepareProgress&)> progress;  // called about once a second
};

}  // namespace onebit::corpus
