// Files of predicted tags, written one sentence after the other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/scheme.h"
#include "onebit/apps/tag/sentence.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::tag {

enum class PredictionFormat {
  kConll,      // CoNLL-U Plus: ID FORM START END PROBABILITY TAG
  kJsonLines,  // {"text", "tokens", "offsets", "tags", "probabilities", "entities"}
};

// The format by the file's ending: .conll, .tsv or .txt, and .jsonl. Error: another ending.
PredictionFormat prediction_format_of(const Path& path);

// Positions count characters (Unicode code points) of the sentence's text from 0, the end
// exclusive. An entity's probability is the mean of its words' probabilities.
class PredictionFile {
 public:
  struct Options {
    PredictionFormat format = PredictionFormat::kConll;
    std::vector<std::string> labels = {};
    bool has_entities = true;
  };

  // `path` stays absent or unchanged until finish().
  PredictionFile(const Path& path, Options options);

  // Adds a model's outputs for the words of the next sentence, [words, labels].
  void add(const Sentence& sentence, std::span<const float> outputs);
  void finish();
  int64_t sentences() const { return sentences_; }
  int64_t words() const { return words_; }

 private:
  Options options_;
  PartialFile file_;
  int64_t sentences_ = 0, words_ = 0;
};

}  // namespace onebit::tag
