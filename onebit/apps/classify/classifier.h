// Labels of texts:
//
//   onebit::classify::Classifier classifier("runs/topics");
//   for (const auto& one : classifier.predict({"one text", "another"})) use(one.labels);
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/classify/labels.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/inference.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::classify {

// Interprets a model's outputs: probabilities, and the chosen labels or numbers.

// What makes probabilities or a number of the outputs.
enum class Activation { kIdentity, kSigmoid, kSoftmax };
// The softmax for single labels, the sigmoid for several, and for regression nothing.
Activation usual_activation(Problem problem);
// "the sigmoid of the output"
const char* describe(Activation activation);
std::vector<double> activated(Activation activation, std::span<const float> outputs);

// Labels whose probability is above the threshold.
std::vector<int32_t> present_labels(std::span<const float> outputs, double threshold);

// What a model says about a text.
struct Prediction {
  // The most probable one, or of several those whose probability is above the threshold. Empty for
  // regression.
  std::vector<std::string> labels;
  std::vector<double> probabilities;  // by output, as of activated()
};
// How the outputs of a model are interpreted.
struct Interpretation {
  Problem problem = Problem::kSingleLabel;
  Activation activation = Activation::kSoftmax;
  double threshold = 0.5;  // of several labels
};
// `labels` by output.
Prediction prediction_of(const Interpretation& how, const std::vector<std::string>& labels,
                         std::span<const float> outputs);

// The loss of one example as PyTorch computes it: cross-entropy, the mean of the sigmoid
// cross-entropies, the mean squared error, all without weights.
double loss_of(const Targets& targets, int64_t example, std::span<const float> outputs);

// Returns the logits of every example, f32 [examples, outputs], on all ranks, which share the work.
// The model and `buffer` must be planned for `batch` of the longest examples. Collective.
std::vector<float> predict_outputs(Context& context, ClassificationModel& model,
                                   const finetune::EncodedExamples& examples, int64_t batch,
                                   training::DeviceBatchBuffer& buffer,
                                   comm::Communicator& communicator);

struct ClassifierOptions {
  std::optional<int64_t> max_sequence_length;  // absent: finetune::sequence_length()
  int64_t batch = 32;
  // The tokens of a batch, but at least a longest text. Absent: 512 for each.
  std::optional<int64_t> batch_tokens = {};
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
  std::optional<int> threads = {};             // of a context of its own. Absent: all
  training::FileUse file_use = training::FileUse::kWhileUsed;
};

// A fine-tuned model loaded from disk. Any number of threads may call it: calls that compute take
// turns.
class Classifier {
 public:
  // `path` is resolved by find_model_folder(). Computes on the CPU. Errors: a model of another
  // kind, a head that does not fit its problem, or fewer positions than
  // options.max_sequence_length.
  explicit Classifier(const Path& path, const ClassifierOptions& options = {});
  // Computes with `context`, which must outlive it.
  Classifier(Context& context, const Path& path, const ClassifierOptions& options);

  const std::vector<std::string>& labels() const { return labels_; }
  Problem problem() const { return problem_; }
  // A CrossEncoder's for one output, and for several where it is the sigmoid. A model of one output
  // without a problem_type has the sigmoid, as in transformers and sentence-transformers.
  Activation activation() const;
  // Whether sentence-transformers gives the outputs of several labels as they are.
  bool scores_are_outputs() const;

  // What the model says about texts, or about pairs of texts.
  std::vector<Prediction> predict(std::vector<std::string> texts, double threshold = 0.5);
  std::vector<Prediction> predict(std::vector<std::string> texts, std::vector<std::string> pairs,
                                  double threshold = 0.5);
  // The logits, f32 [examples, outputs]. If one example has a pair, all must have one.
  std::vector<float> outputs(std::span<const finetune::Example> examples, bool has_pairs);
  // The same of examples that are computed at once: at most options.batch of options.batch_tokens.
  std::vector<float> outputs_of_batch(const finetune::EncodedExamples& examples);
  // Warns at the first call if pairs get no segments that the model has. Any thread may call it.
  void expect_pairs();
  const training::ModelDescription& model() const { return description_; }
  int64_t max_sequence_length() const { return bounds_.longest; }
  // The number of examples so far that were truncated.
  int64_t cut() const { return cut_; }
  // Reads the examples of a file in parts of bounded size, and calls add(outputs) for each
  // example, in order. Returns their number.
  int64_t for_each_output(finetune::ExampleReader& reader,
                          const std::function<void(std::span<const float>)>& add);

 private:
  Classifier(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
             const ClassifierOptions& options);
  std::vector<Prediction> predictions(std::span<const float> outputs, double threshold) const;

  std::unique_ptr<finetune::InferenceContext> inference_;
  Context& context_;
  ClassifierOptions options_;
  training::ModelDescription description_;
  batches::BatchBounds bounds_;
  std::vector<std::string> labels_;
  Problem problem_;
  ParameterTable table_;
  ConstantWeights weights_;
  ClassificationModel model_;
  training::DeviceBatchBuffer buffer_;
  std::atomic<int64_t> cut_ = 0;
  Path path_;
  std::once_flag expects_pairs_;
};

}  // namespace onebit::classify
