// Answers of a question-answering model to the questions of a SQuAD file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/apps/squad/answer_decoder.h"
#include "onebit/apps/squad/features.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::squad {

// Returns the logits of every window on all ranks, which share the work. The model and `buffer`
// must be planned for `batch` sequences of features.options().max_sequence_length. Collective.
SpanLogits predict_logits(Context& context, QuestionAnsweringModel& model, const Features& features,
                          int64_t batch, training::DeviceBatchBuffer& buffer,
                          comm::Communicator& communicator);

struct SquadPredictionOptions {
  FeatureOptions features;  // `use` is ignored and taken as kPredict
  // If not, a model with fewer positions takes smaller windows of the same proportions.
  bool is_window_chosen = false;
  DecodeOptions decode;
  int64_t batch = 32;
};

// A fine-tuned model loaded from disk.
class SquadPredictor {
 public:
  // `path` is resolved by find_model_folder(). Without `compute` the device's type is used. Error:
  // a model without "qa_outputs".
  SquadPredictor(Context& context, const Path& path, std::optional<DType> compute = DType::kF32);

  const training::ModelDescription& description() const { return description_; }
  // Builds features and computes their logits. Collective. `dataset` must outlive the result.
  struct Computed {
    std::unique_ptr<Features> features;
    SpanLogits logits;
  };
  Computed compute(const Dataset& dataset, const SquadPredictionOptions& options,
                   comm::Communicator& communicator);
  // Windows as ask() takes them.
  FeatureOptions window_options(const SquadPredictionOptions& options) const;
  // Reserves memory for logits_of_batch(), until compute() or ask() is called.
  void reserve(batches::BatchBounds bounds);
  struct WindowOf {
    const Features* features;
    uint32_t window;
  };
  // f32 [tokens, 2]: the logits of windows that are computed at once, one after the other.
  std::vector<float> logits_of_batch(std::span<const WindowOf> windows);
  // Answers one question on one text.
  DecodedAnswer ask(std::string_view context, std::string_view question,
                    const SquadPredictionOptions& options);

 private:
  Context& context_;
  training::ModelDescription description_;
  ParameterTable table_;
  ConstantWeights weights_;
  QuestionAnsweringModel model_;
  std::optional<training::DeviceBatchBuffer> buffer_;  // of reserve()
};

}  // namespace onebit::squad
