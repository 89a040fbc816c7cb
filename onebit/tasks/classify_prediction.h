// Outputs of a classifier for texts.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onebit/classify/encoded_examples.h"
#include "onebit/classify/labels.h"
#include "onebit/comm/communicator.h"
#include "onebit/model/classification_model.h"
#include "onebit/training/device_batch.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

// The logits of every example, f32 [examples, outputs], on all ranks; the ranks share the work. The
// model and `buffer` must be planned for `batch` of the longest examples. Collective.
std::vector<float> predict_outputs(Context& context, model::ClassificationModel& model,
                                   const classify::EncodedExamples& examples, int64_t batch,
                                   training::DeviceBatchBuffer& buffer,
                                   comm::Communicator& communicator);

struct ClassifyPredictionOptions {
  int64_t max_sequence_length = 128;
  int64_t batch = 32;
};

// A fine-tuned model from the disk, f32.
class ClassifyPredictor {
 public:
  // `path` as find_model_folder() takes it. Errors: a model of another kind; fewer positions than
  // options.max_sequence_length.
  ClassifyPredictor(Context& context, const Path& path, const ClassifyPredictionOptions& options);

  const std::vector<std::string>& labels() const { return labels_; }
  classify::Problem problem() const { return problem_; }

  // The logits, f32 [examples, outputs]; a member of one example must have a pair if all have.
  std::vector<float> outputs(std::span<const classify::Example> examples, bool has_pairs);
  // How many of the examples so far were cut.
  int64_t cut() const { return cut_; }
  // Reads the examples of a file in pieces that do not depend on its size, and calls add(outputs)
  // for each, in order. Returns their number.
  int64_t for_each_output(classify::ExampleReader& reader,
                          const std::function<void(std::span<const float>)>& add);

 private:
  Context& context_;
  ClassifyPredictionOptions options_;
  training::ModelDescription description_;
  std::vector<std::string> labels_;
  classify::Problem problem_;
  params::Table table_;
  model::ClassificationModel model_;
  training::DeviceBatchBuffer buffer_;
  int64_t cut_ = 0;
};

}  // namespace onebit::tasks
