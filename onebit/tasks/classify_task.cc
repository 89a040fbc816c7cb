#include "onebit/tasks/classify_task.h"

#include <algorithm>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/tasks/classifier_labels.h"
#include "onebit/tasks/classify_batch.h"
#include "onebit/training/epochs.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {
namespace {

using classify::Problem;

constexpr const char* kScoresFile = "scores.json";
constexpr size_t kMostLabelsShown = 10;

model::LabelKind kind_of(Problem problem) {
  return problem == Problem::kSingleLabel  ? model::LabelKind::kClass
         : problem == Problem::kMultiLabel ? model::LabelKind::kLabels
                                           : model::LabelKind::kValues;
}

class ClassifySource : public training::BatchSource {
 public:
  // `state` shows in checkpoints whether the data are the same.
  ClassifySource(classify::ExampleStream stream, Json state)
      : stream_(std::move(stream)), state_(std::move(state)) {}

  std::unique_ptr<training::HostBatch> make_batch() const override {
    auto batch = std::make_unique<ClassifyBatch>();
    batch->batch.reserve(stream_.bounds());
    return batch;
  }
  void build(uint64_t first_sample, int64_t micro_step, training::HostBatch& batch) override {
    stream_.build(first_sample, micro_step, static_cast<ClassifyBatch&>(batch).batch);
  }
  data::BatchBounds bounds() const override { return stream_.bounds(); }
  uint64_t samples_per_epoch() const override { return stream_.samples_per_epoch(); }
  Json position(uint64_t /*samples*/) override { return state_; }

 private:
  classify::ExampleStream stream_;
  Json state_;
};

std::string listed(const std::vector<std::string>& labels) {
  const auto end =
      labels.begin() + static_cast<ptrdiff_t>(std::min(labels.size(), kMostLabelsShown));
  return fmt::format("{}{}", fmt::join(labels.begin(), end, ", "),
                     labels.size() > kMostLabelsShown ? ", ..." : "");
}

std::string counted(const classify::Examples& examples) {
  return fmt::format("{} {}", examples.all.size(), examples.has_pairs ? "pairs of texts" : "texts");
}

}  // namespace

ClassifyTask::ClassifyTask(Context& context, const ClassifyTrainingOptions& options,
                           comm::Communicator& communicator)
    : model_folder_(options.model),
      config_(parse_classify_recipe(options.recipe, options.recipe_place)) {
  const training::ModelDescription checkpoint =
      training::read_model_description(training::find_model_folder(options.model));
  description_ = classifier_description(config_, checkpoint);
  examples_ = classify::read_examples(options.train, config_.layout);
  choose_labels(checkpoint.classifier,
                checkpoint.architecture == training::kClassifierArchitecture);
  open_train_data(options, context.threads());
  choose_metrics();
  open_dev_data(options.dev, context.threads());
  if (config_.engine.run.steps == 0) {
    decisions_.push_back(training::choose_steps(config_.engine, config_.epochs,
                                                examples_.all.size(), communicator.world_size()));
  }
}

void ClassifyTask::choose_labels(const training::ClassifierDescription& checkpoint,
                                 bool is_classifier) {
  const Problem problem = config_.label_format.problem;
  const bool are_given = !config_.labels.empty();
  if (are_given) {
    check_given_labels(config_.labels, problem == Problem::kSingleLabel ? 2 : 1,
                       config_.engine.place, "classify.labels");
  }
  const bool same_problem =
      checkpoint.problem_type.empty() || checkpoint.problem_type == classify::name_of(problem);
  LabelChoice choice = tasks::choose_labels(
      are_given ? config_.labels : classify::find_labels(examples_, config_.label_format),
      are_given, same_problem ? checkpoint : training::ClassifierDescription(), is_classifier);
  description_.classifier.labels = std::move(choice.labels);
  keeps_head_ = choice.keeps_head;
  if (!choice.decision.empty()) decisions_.push_back(std::move(choice.decision));
}

void ClassifyTask::open_train_data(const ClassifyTrainingOptions& options, int threads) {
  const std::vector<std::string>& labels = description_.classifier.labels;
  targets_ = classify::targets_of(examples_, config_.label_format, labels);
  require(!examples_.has_pairs || description_.config.segments >= 2,
          "{}: holds pairs of texts, and the model has no second segment (type_vocab_size 1)",
          examples_.source);
  encoded_ = std::make_unique<classify::EncodedExamples>(
      examples_.all, description_.vocabulary, description_.casing,
      classify::EncodeOptions{.max_sequence_length = config_.max_sequence_length,
                              .has_pairs = examples_.has_pairs,
                              .threads = threads});
  const bool has_labels = targets_.problem != Problem::kRegression;
  data_rows_.push_back(
      {"training data",
       fmt::format("{}: {}{}", options.train.string(), counted(examples_),
                   has_labels ? fmt::format(", {} labels ({})", labels.size(), listed(labels))
                              : ", a number each")});
  if (encoded_->cut() > 0) {
    decisions_.push_back(fmt::format(
        "{} of {} sequences are longer than {} tokens and were cut{} (data.max_sequence_length)",
        encoded_->cut(), encoded_->size(), config_.max_sequence_length,
        examples_.has_pairs ? ", the longer text of a pair first" : ""));
  }
  if (examples_.skipped > 0) {
    decisions_.push_back(fmt::format("{} lines of {} have too few fields and were left out",
                                     examples_.skipped, examples_.source));
  }
}

void ClassifyTask::choose_metrics() {
  const std::vector<std::string>& labels = description_.classifier.labels;
  if (!config_.positive_label.empty()) {
    score_options_.positive = classify::index_of_label(
        labels, config_.positive_label, config_.engine.place + ": key `classify.positive_label`");
  }
  score_options_.threshold = config_.threshold;
  const auto names = classify::metric_names(targets_.problem, targets_.outputs);
  const std::string wanted = config_.best_by.empty() ? names.front().name : config_.best_by;
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return wanted == one.name; });
  require(found != names.end(),
          "{}: key `classify.best_by` is {}, which is of two labels; there are {}: take f1_macro",
          config_.engine.place, wanted, labels.size());
  kept_by_ = {.metric = wanted, .smaller_is_better = found->smaller_is_better};
}

void ClassifyTask::open_dev_data(const std::vector<DevFile>& files, int threads) {
  for (const DevFile& file : files) {
    auto dev = std::make_unique<ClassifyDev>(file, config_, description_, threads);
    require(dev->has_pairs() == examples_.has_pairs,
            "{}: one of this file and {} holds pairs of texts, the other single ones",
            file.path.string(), examples_.source);
    data_rows_.push_back(
        {"judged on", fmt::format("{}: {} examples", file.path.string(), dev->examples())});
    dev_.push_back(std::move(dev));
  }
}

std::vector<float> ClassifyTask::class_weights() const {
  if (config_.weighting == "none") return {};
  const std::vector<std::string>& labels = description_.classifier.labels;
  return classify::scaled_weights(
      config_.weighting == "balanced"
          ? classify::balanced_weights(targets_, labels, examples_.source)
          : classify::named_weights(config_.class_weights, labels),
      targets_);
}

void ClassifyTask::declare(params::Table& table) {
  model_ = std::make_unique<model::ClassificationModel>(
      description_.config,
      model::ClassifierHead{.outputs = targets_.outputs,
                            .kind = kind_of(targets_.problem),
                            .dropout = description_.classifier.dropout,
                            .weights = class_weights()},
      table);
}

std::unique_ptr<training::BatchSource> ClassifyTask::open(const training::StreamShare& share,
                                                          const Json* saved) {
  const Json state = {{"examples", examples_.all.size()},
                      {"labels", description_.classifier.labels},
                      {"data", classify::checksum(examples_)}};
  if (saved != nullptr) {
    for (const char* key : {"labels", "examples"}) {
      require(saved->at(key) == state.at(key),
              "{}: the run was started on other training data: it had the {} {}, {} has {}",
              config_.engine.place, key, saved->at(key).dump(), examples_.source,
              state.at(key).dump());
    }
  }
  return std::make_unique<ClassifySource>(
      classify::ExampleStream(*encoded_, targets_, share.dealt(), examples_.source), state);
}

data::BatchBounds ClassifyTask::evaluation_bounds() const {
  data::BatchBounds bounds;
  for (const auto& dev : dev_) {
    bounds.sequences = std::max(bounds.sequences, dev->bounds().sequences);
    bounds.rows = std::max(bounds.rows, dev->bounds().rows);
  }
  return bounds;
}

model::MemoryPlan ClassifyTask::plan(Context& context, const model::BatchLimits& limits) {
  return model_->plan(context, limits, config_.model.memory, true);
}

std::string ClassifyTask::fill(params::Table& table) {
  const uint64_t seed = config_.engine.run.seed;
  table.initialize(seed);
  const Path folder = training::find_model_folder(model_folder_);
  formats::MatchRules rules = {.may_lack = {"classifier.", "bert.pooler."},
                               .may_ignore = kNotForClassification};
  if (!keeps_head_) rules.replaced = {"classifier."};
  training::load_values(table, folder, rules);
  return fmt::format("{}; tensors it lacks are drawn with seed {}", folder.string(), seed);
}

std::vector<std::string> ClassifyTask::resume(const Json& client_state,
                                              const std::string& /*place*/) {
  if (client_state.at("data") == classify::checksum(examples_)) return {};
  return {"changed: --train contains other texts or labels"};
}

training::Sums ClassifyTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                              const training::StepItems& items,
                                              const model::TrainingPass& pass) {
  const auto result = model_->forward_backward(context, batch, items.weight(items.samples), pass);
  return {result.loss_sum, static_cast<double>(result.correct)};
}

training::StepMetrics ClassifyTask::metrics(const training::StepSums& step) const {
  const auto samples = static_cast<double>(step.items.samples);
  const double epoch =
      static_cast<double>(step.samples) / static_cast<double>(examples_.all.size());
  training::StepMetrics result = {.loss = step.sums[0] / samples, .metrics = {{"epoch", epoch}}};
  if (targets_.problem == Problem::kSingleLabel) {
    result.metrics.push_back({"accuracy", step.sums[1] / samples});
  }
  return result;
}

training::EvaluationTimes ClassifyTask::evaluation_times() const {
  return {.by_steps = !dev_.empty(), .by_epochs = !dev_.empty()};
}

training::Evaluation ClassifyTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                            comm::Communicator& communicator) {
  const Stopwatch watch;
  training::Evaluation evaluation = {.key = "dev"};
  scores_.clear();
  for (const auto& dev : dev_) {
    scores_.push_back(dev->evaluate(context, *model_, score_options_, buffer, communicator));
    const std::string prefix = scores_.size() == 1 ? "" : dev->file().name + "_";
    for (metrics::Metric metric : scores_.back().metrics) {
      metric.name = prefix + metric.name;
      evaluation.record.push_back(std::move(metric));
    }
    evaluation.record.push_back({prefix + "examples", static_cast<double>(dev->examples()), true});
  }
  evaluation.metrics = evaluation.record;
  evaluation.metrics.push_back({"seconds", watch.seconds()});
  evaluation.line = describe(evaluation.record);
  return evaluation;
}

std::string ClassifyTask::describe(const std::vector<metrics::Metric>& record) const {
  std::string text =
      fmt::format("{} {:.4f}", kept_by_.metric, metrics::value_of(record, kept_by_.metric));
  for (const metrics::Metric& metric : record) {
    if (metric.name == kept_by_.metric) continue;
    // The micro F1 of single labels is their accuracy.
    const bool repeats =
        targets_.problem == Problem::kSingleLabel && metric.name.ends_with("f1_micro");
    if (repeats) continue;
    text += metric.is_count
                ? fmt::format(", {} {}", metric.name, static_cast<int64_t>(metric.value))
                : fmt::format(", {} {:.4f}", metric.name, metric.value);
  }
  return text;
}

void ClassifyTask::write_beside_model(const Path& folder) const {
  Json files = Json::array();
  for (size_t i = 0; i < scores_.size(); ++i) {
    Json scores = {{"file", dev_[i]->file().path.string()}};
    scores.update(classify::json_of(scores_[i]));
    files.push_back(std::move(scores));
  }
  write_file_atomically(folder / kScoresFile, files.dump(2) + "\n");
}

std::string ClassifyTask::sequences() const {
  return fmt::format("{} of at most {} tokens, without padding",
                     examples_.has_pairs ? "pairs of texts" : "texts", encoded_->longest());
}

training::RunSummary run_classify_training(Context& context, const ClassifyTrainingOptions& options,
                                           comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  ClassifyTask task(context, options, communicator);
  return training::run_training(context, task, options, communicator);
}

}  // namespace onebit::tasks
