#include "onebit/apps/classify/classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "onebit/apps/classify/classify_config.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/inference.h"

namespace onebit::classify {

namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double column_loss(Problem problem, double output, double target) {
  if (problem == Problem::kRegression) return (output - target) * (output - target);
  return std::max(output, 0.0) - output * target + std::log1p(std::exp(-std::abs(output)));
}

}  // namespace

Activation usual_activation(Problem problem) {
  return problem == Problem::kSingleLabel  ? Activation::kSoftmax
         : problem == Problem::kMultiLabel ? Activation::kSigmoid
                                           : Activation::kIdentity;
}

const char* describe(Activation activation) {
  return activation == Activation::kSoftmax   ? "the softmax of the outputs"
         : activation == Activation::kSigmoid ? "the sigmoid of the outputs"
                                              : "the outputs as they are";
}

std::vector<double> activated(Activation activation, std::span<const float> outputs) {
  if (activation == Activation::kSoftmax) return metrics::softmax(outputs);
  std::vector<double> result(outputs.begin(), outputs.end());
  if (activation == Activation::kSigmoid) {
    for (double& value : result) value = sigmoid(value);
  }
  return result;
}

std::vector<int32_t> present_labels(std::span<const float> outputs, double threshold) {
  std::vector<int32_t> present;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (sigmoid(double{outputs[i]}) > threshold) present.push_back(static_cast<int32_t>(i));
  }
  return present;
}

Prediction prediction_of(const Interpretation& how, const std::vector<std::string>& labels,
                         std::span<const float> outputs) {
  Prediction prediction{.labels = {}, .probabilities = activated(how.activation, outputs)};
  const auto add = [&](int64_t label) {
    prediction.labels.push_back(labels[static_cast<size_t>(label)]);
  };
  if (how.problem == Problem::kSingleLabel) add(metrics::best_class(outputs));
  if (how.problem == Problem::kMultiLabel) {
    for (const int32_t label : present_labels(outputs, how.threshold)) add(label);
  }
  return prediction;
}

double loss_of(const Targets& targets, int64_t example, std::span<const float> outputs) {
  const auto index = static_cast<size_t>(example);
  if (targets.problem == Problem::kSingleLabel) {
    return metrics::cross_entropy(outputs, targets.classes[index]);
  }
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum += column_loss(targets.problem, double{outputs[i]},
                       double{targets.values[index * outputs.size() + i]});
  }
  return sum / static_cast<double>(outputs.size());
}

namespace {

constexpr int64_t kBatchesOfPart = 32;
constexpr size_t kBytesOfPart = size_t{16} << 20;

constexpr finetune::ClassifierKind kKind = {.architecture = model::kClassifierArchitecture,
                                            .items = "texts",
                                            .command = "onebit classify train"};

// As transformers interprets a folder that names no problem_type. A CrossEncoder's one output is a
// number, whatever the problem_type.
Problem problem_of(const training::ModelDescription& description, const Path& path) {
  const std::string& name = description.classifier.problem_type;
  const bool is_one = finetune::labels_of(description.classifier).size() == 1;
  if (is_one && description.classifier.score_activation) return Problem::kRegression;
  if (const auto problem = classify::problem_named(name)) return *problem;
  require(
      name.empty(),
      "{}: key `problem_type` is {}; it must be {}, {} or {}, or be left out for what the number "
      "of labels says",
      (training::find_model_folder(path) / "config.json").string(), quote(name),
      name_of(Problem::kSingleLabel), name_of(Problem::kMultiLabel), name_of(Problem::kRegression));
  return is_one ? Problem::kRegression : Problem::kSingleLabel;
}

// Error: the head has outputs that nothing would read, or too few to choose from.
void require_head_of(Problem problem, size_t outputs, const Path& path) {
  require(problem != Problem::kRegression || outputs == 1,
          "{}: the model predicts {} numbers for a text (problem_type \"regression\"), onebit's "
          "models predict one; if these are labels, set problem_type in its config.json to "
          "single_label_classification or multi_label_classification",
          path.string(), outputs);
  require(problem != Problem::kSingleLabel || outputs >= 2,
          "{}: the model's classifier has a single class, so it has nothing to choose from; if it "
          "predicts a number, set problem_type in its config.json to regression",
          path.string());
}

}  // namespace

std::vector<float> predict_outputs(Context& context, ClassificationModel& model,
                                   const finetune::EncodedExamples& examples, int64_t batch,
                                   training::DeviceBatchBuffer& buffer,
                                   comm::Communicator& communicator) {
  const auto outputs = static_cast<size_t>(model.head().outputs);
  std::vector<float> all(static_cast<size_t>(examples.size()) * outputs);
  const auto values_of = [&](uint32_t example) {
    return std::span(all).subspan(example * outputs, outputs);
  };
  batches::Batch rows;
  finetune::predict_items(examples.lengths(), {.items = batch, .tokens = buffer.bounds().rows},
                          communicator, values_of, [&](std::span<const uint32_t> items) {
                            finetune::build_batch(examples, items, rows);
                            return model.predict(context, buffer.upload_rounded(context, rows));
                          });
  return all;
}

Classifier::Classifier(const Path& path, const ClassifierOptions& options)
    : Classifier(std::make_unique<finetune::InferenceContext>(options.threads), path, options) {}

Classifier::Classifier(Context& context, const Path& path, const ClassifierOptions& options)
    : Classifier(std::make_unique<finetune::InferenceContext>(context), path, options) {}

Classifier::Classifier(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
                       const ClassifierOptions& options)
    : inference_(std::move(inference)),
      context_(inference_->context()),
      options_(options),
      description_(finetune::describe_classifier(path, kKind)),
      bounds_(
          finetune::inference_bounds(options.batch, options.batch_tokens,
                                     finetune::sequence_length(options.max_sequence_length,
                                                               description_, path, kClassifyTask))),
      labels_(finetune::labels_of(description_.classifier)),
      problem_(problem_of(description_, path)),
      model_(description_.config, {.outputs = static_cast<int64_t>(labels_.size())}, table_),
      buffer_(context_.device(), bounds_, description_.uncounted_token()),
      path_(path) {
  require_head_of(problem_, labels_.size(), path);
  weights_ = finetune::load_fine_tuned(context_, table_, options.compute, path,
                                       {model::kPooler, model::kClassifierHead}, options.file_use);
  model_.plan(context_, training::limits_of(bounds_), {}, false);
}

Activation Classifier::activation() const {
  using formats::ScoreActivation;
  const training::ClassifierDescription& classifier = description_.classifier;
  if (classifier.score_activation == ScoreActivation::kSigmoid) return Activation::kSigmoid;
  if (problem_ == Problem::kRegression && classifier.problem_type.empty() &&
      !classifier.score_activation) {
    return Activation::kSigmoid;
  }
  return usual_activation(problem_);
}

bool Classifier::scores_are_outputs() const {
  return labels_.size() > 1 &&
         description_.classifier.score_activation == formats::ScoreActivation::kIdentity;
}

void Classifier::expect_pairs() {
  std::call_once(expects_pairs_,
                 [&] { finetune::warn_of_pairs_without_segments(description_, path_); });
}

std::vector<float> Classifier::outputs(std::span<const finetune::Example> examples,
                                       bool has_pairs) {
  if (has_pairs) expect_pairs();
  return inference_->take_turn([&] {
    const finetune::EncodedExamples encoded(examples, description_.vocabulary, description_.casing,
                                            {.max_sequence_length = bounds_.longest,
                                             .has_pairs = has_pairs,
                                             .threads = context_.threads()});
    cut_ += encoded.cut();
    const auto communicator = comm::make_single_rank();
    return predict_outputs(context_, model_, encoded, options_.batch, buffer_, *communicator);
  });
}

std::vector<Prediction> Classifier::predict(std::vector<std::string> texts, double threshold) {
  return predictions(outputs(finetune::examples_of(std::move(texts)), false), threshold);
}

std::vector<Prediction> Classifier::predict(std::vector<std::string> texts,
                                            std::vector<std::string> pairs, double threshold) {
  return predictions(outputs(finetune::examples_of(std::move(texts), std::move(pairs)), true),
                     threshold);
}

std::vector<Prediction> Classifier::predictions(std::span<const float> outputs,
                                                double threshold) const {
  const Interpretation how{.problem = problem_, .activation = activation(), .threshold = threshold};
  std::vector<Prediction> made;
  for (size_t first = 0; first < outputs.size(); first += labels_.size()) {
    made.push_back(prediction_of(how, labels_, outputs.subspan(first, labels_.size())));
  }
  return made;
}

std::vector<float> Classifier::outputs_of_batch(const finetune::EncodedExamples& examples) {
  std::vector<uint32_t> all(static_cast<size_t>(examples.size()));
  std::iota(all.begin(), all.end(), 0);
  batches::Batch rows;
  finetune::build_batch(examples, all, rows);
  const Tensor outputs = inference_->take_turn(
      [&] { return model_.predict(context_, buffer_.upload_rounded(context_, rows)); });
  const float* first = outputs.data<float>();
  return {first, first + all.size() * labels_.size()};
}

int64_t Classifier::for_each_output(finetune::ExampleReader& reader,
                                    const std::function<void(std::span<const float>)>& add) {
  int64_t examples = 0;
  finetune::for_each_part<finetune::Example>(
      {.items = static_cast<size_t>(kBatchesOfPart * options_.batch), .size = kBytesOfPart},
      [&](finetune::Example& example) { return reader.next(example); },
      [](const finetune::Example& example) {
        return example.text.size() + example.text_pair.size();
      },
      [&](std::span<const finetune::Example> part) {
        const std::vector<float> all = outputs(part, reader.has_pairs());
        for (size_t i = 0; i < part.size(); ++i) {
          add(std::span(all).subspan(i * labels_.size(), labels_.size()));
        }
        examples += static_cast<int64_t>(part.size());
      });
  return examples;
}

}  // namespace onebit::classify
