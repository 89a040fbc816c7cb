// Labelled examples on which a classifier is evaluated during training.
#pragma once

#include <string>
#include <vector>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/classify/classify_config.h"
#include "onebit/apps/classify/scores.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/training/device_batch.h"

namespace onebit::classify {

struct DevFile {
  Path path;
  // Prefix of the names of its metrics ("mismatched_accuracy"); empty for the first file.
  std::string name;
};

class ClassifyDev {
 public:
  // `description` contains the labels. Errors: those of read_examples() and targets_of().
  ClassifyDev(DevFile file, const ClassifyConfig& config,
              const training::ModelDescription& description, int threads);

  const DevFile& file() const { return file_; }
  int64_t examples() const { return encoded_.size(); }
  int64_t cut() const { return encoded_.cut(); }
  bool has_pairs() const { return examples_.has_pairs; }
  const std::string& left_out() const { return examples_.left_out; }
  uint32_t checksum() const { return finetune::checksum(examples_); }
  batches::BatchBounds bounds() const;
  // The scores are equal on all ranks. Collective.
  Scores evaluate(Context& context, ClassificationModel& model, const ScoreOptions& options,
                  training::DeviceBatchBuffer& buffer, comm::Communicator& communicator) const;

 private:
  DevFile file_;
  std::vector<std::string> labels_;
  int64_t batch_;
  finetune::Examples examples_;
  Targets targets_;
  finetune::EncodedExamples encoded_;
};

}  // namespace onebit::classify
