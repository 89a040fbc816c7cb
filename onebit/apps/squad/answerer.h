// Answers to questions about texts:
//
//   onebit::squad::Answerer answerer("runs/squad");
//   const auto answer = answerer.answer({.question = "Who wrote it?", .context = passage});
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/squad/answer_decoder.h"
#include "onebit/apps/squad/features.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/finetune/inference.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::squad {

// Returns the logits of every window on all ranks, which share the work. The model and `buffer`
// must be planned for `batch` sequences of features.options().max_sequence_length. Collective.
SpanLogits predict_logits(Context& context, QuestionAnsweringModel& model, const Features& features,
                          int64_t batch, training::DeviceBatchBuffer& buffer,
                          comm::Communicator& communicator);

struct AnswererOptions {
  FeatureOptions features;  // `use` is ignored and taken as kPredict
  // If not, a model with fewer positions takes smaller windows of the same proportions.
  bool is_window_chosen = false;
  DecodeOptions decode;
  int64_t batch = 32;
};

struct SquadConfig;
// How a recipe predicts.
AnswererOptions prediction_of(const SquadConfig& config);

// A question on a text.
struct Asked {
  std::string question, context;
};
// The same as a data set.
Dataset dataset_of(const Asked& asked);

// A fine-tuned model loaded from disk. Any number of threads may call it: calls that compute take
// turns.
class Answerer {
 public:
  // `path` is resolved by find_model_folder(). Without `compute` the device's type is used.
  // Computes on the CPU, without `threads` on as many as the process has processors. Error: a model
  // without "qa_outputs".
  explicit Answerer(const Path& path, std::optional<DType> compute = DType::kF32,
                    std::optional<int> threads = {});
  // Computes with `context`, which must outlive it.
  Answerer(Context& context, const Path& path, std::optional<DType> compute = DType::kF32,
           training::FileUse file_use = training::FileUse::kWhileUsed);

  const training::ModelDescription& description() const { return description_; }
  // Builds features and computes their logits. Collective. `dataset` must outlive the result.
  struct Computed {
    std::unique_ptr<Features> features;
    SpanLogits logits;
  };
  Computed compute(const Dataset& dataset, const AnswererOptions& options,
                   comm::Communicator& communicator);
  // Windows as answer() takes them.
  FeatureOptions window_options(const AnswererOptions& options) const;
  // Reserves memory for logits_of_batch(), until compute() or answer() is called.
  void reserve(batches::BatchBounds bounds);
  struct WindowOf {
    const Features* features;
    uint32_t window;
  };
  // f32 [tokens, 2]: the logits of windows that are computed at once, one after the other.
  std::vector<float> logits_of_batch(std::span<const WindowOf> windows);
  // Those of the recipe of the run or checkpoint that was opened, or the defaults. The model's
  // training decides whether there may be no answer.
  const AnswererOptions& usual_options() const { return usual_; }
  // Errors: a text that is empty or not UTF-8. Without options it takes the usual ones.
  DecodedAnswer answer(const Asked& asked);
  DecodedAnswer answer(const Asked& asked, const AnswererOptions& options);

 private:
  Answerer(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
           std::optional<DType> compute, training::FileUse file_use);

  std::unique_ptr<finetune::InferenceContext> inference_;
  Context& context_;
  training::ModelDescription description_;
  AnswererOptions usual_;
  ParameterTable table_;
  ConstantWeights weights_;
  QuestionAnsweringModel model_;
  std::optional<training::DeviceBatchBuffer> buffer_;  // of reserve()
};

}  // namespace onebit::squad
