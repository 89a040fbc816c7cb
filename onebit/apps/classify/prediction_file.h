// Files of predictions, written one after the other, one per line.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/classify/classifier.h"
#include "onebit/apps/classify/labels.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::classify {

enum class PredictionFormat {
  kTsv,        // a header, the prediction, a column of probabilities per label, and one of scores
  kJsonLines,  // {"label", "probability", "probabilities", "scores"}; {"labels", ...}; {"value"}
  kGlue,       // the format of gluebenchmark.com: index and prediction
};

// The format by the file's ending: .tsv or .jsonl. Error: another ending.
PredictionFormat prediction_format_of(const Path& path);

class PredictionFile {
 public:
  struct Options {
    PredictionFormat format = PredictionFormat::kTsv;
    Problem problem = Problem::kSingleLabel;
    std::vector<std::string> labels = {};
    double threshold = 0.5;                     // kMultiLabel
    std::string separator = ",";                // between the labels of a TSV field
    std::optional<Activation> activation = {};  // absent: the usual one of the problem
    bool has_scores = false;  // of several labels, the outputs beside their probabilities
  };

  // `path` stays absent or unchanged until finish(). Error: a label that a TSV cannot contain.
  PredictionFile(const Path& path, Options options);

  // Adds a model's outputs for the next example.
  void add(std::span<const float> outputs);
  void finish();
  int64_t count() const { return count_; }

 private:
  std::string tsv_line(std::span<const float> outputs) const;
  std::string json_line(std::span<const float> outputs) const;
  std::string glue_line(std::span<const float> outputs) const;
  std::string prediction(std::span<const float> outputs) const;
  Prediction interpreted(std::span<const float> outputs) const;

  Options options_;
  PartialFile file_;
  int64_t count_ = 0;
};

}  // namespace onebit::classify
