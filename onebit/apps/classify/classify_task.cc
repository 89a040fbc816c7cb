#include "onebit/apps/classify/classify_task.h"

#include <algorithm>

#include "onebit/apps/classify/classifier.h"
#include "onebit/apps/classify/label_names.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/fine_tuning_task.h"

namespace onebit::classify {

namespace {

model::LabelKind kind_of(Problem problem) {
  return problem == Problem::kSingleLabel  ? model::LabelKind::kClass
         : problem == Problem::kMultiLabel ? model::LabelKind::kLabels
                                           : model::LabelKind::kValues;
}

std::string counted(const finetune::Examples& examples) {
  return fmt::format("{} {}", examples.all.size(), examples.has_pairs ? "pairs of texts" : "texts");
}

}  // namespace

ClassifyTask::ClassifyTask(Context& context, const ClassifyTrainingOptions& options,
                           const training::Connection& connection)
    : FineTuningTask(options.model, parse_classify_recipe(options.recipe)) {
  const training::ModelDescription checkpoint =
      training::read_model_description(training::find_model_folder(options.model));
  description_ = classifier_description(config_, checkpoint);
  config_.max_sequence_length = finetune::fitting_length(config_, config_.max_sequence_length,
                                                         description_, facts_.decisions);
  config_.label_format.known = config_.labels;
  examples_ = classify::read_labelled(options.train, config_.layout, config_.label_format);
  choose_labels(checkpoint.classifier, checkpoint.architecture == model::kClassifierArchitecture);
  require_used_keys(config_, config_.label_format.problem, description_.classifier.labels.size());
  open_train_data(options, context.threads());
  choose_metrics();
  for (const DevFile& file : options.dev) open_dev_data(file, context.threads());
  facts_.name = kClassifyTask;
  facts_.use = "onebit classify predict --model {} --input FILE --output FILE";
  facts_.sequences =
      fmt::format("{} of at most {} tokens, without padding",
                  examples_.has_pairs ? "pairs of texts" : "texts", encoded_->longest());
  choose_steps(examples_.all.size(), open_ranks(connection).world_size());
}

void ClassifyTask::choose_labels(const training::ClassifierDescription& checkpoint,
                                 bool is_classifier) {
  const Problem problem = config_.label_format.problem;
  const bool are_given = !config_.labels.empty();
  if (are_given) {
    finetune::check_given_labels(config_.labels, problem == Problem::kSingleLabel ? 2 : 1,
                                 config_.engine.place, "classify.labels");
    const LabelIndex index(config_.labels);
    for (const std::string& label : config_.labels) {
      require(index.is_alone(label),
              "{}: key `classify.labels` has \"{}\" and another spelling of the same value; files "
              "have both spellings for one label: keep one",
              config_.engine.place, label);
    }
  }
  const bool same_problem =
      checkpoint.problem_type.empty() || checkpoint.problem_type == classify::name_of(problem);
  finetune::LabelChoice choice = finetune::choose_labels(
      are_given ? config_.labels
                : classify::spelled_as(checkpoint.labels,
                                       classify::find_labels(examples_, config_.label_format)),
      are_given, same_problem ? checkpoint : training::ClassifierDescription(), is_classifier);
  description_.classifier.labels = std::move(choice.labels);
  config_.label_format.known = description_.classifier.labels;
  keeps_head_ = choice.keeps_head;
  if (!choice.decision.empty()) facts_.decisions.push_back(std::move(choice.decision));
}

void ClassifyTask::open_train_data(const ClassifyTrainingOptions& options, int threads) {
  const std::vector<std::string>& labels = description_.classifier.labels;
  targets_ = classify::targets_of(examples_, config_.label_format, labels);
  const bool has_labels = targets_.problem != Problem::kRegression;
  const std::vector<float>& numbers = targets_.values;
  const bool is_constant =
      !has_labels && numbers.size() > 1 &&
      std::ranges::all_of(numbers, [&](float number) { return number == numbers.front(); });
  if (is_constant) {
    fail("{}: every label is {}; is this the column of the labels?", examples_.source,
         numbers.front());
  }
  encoded_ = std::make_unique<finetune::EncodedExamples>(encoded(examples_, threads));
  if (examples_.has_pairs) finetune::warn_of_pairs_without_segments(description_, options.model);
  facts_.data_rows.push_back(
      {"training data",
       fmt::format("{}: {}{}", options.train.string(), counted(examples_),
                   has_labels ? fmt::format(", {} labels ({})", labels.size(),
                                            listed(labels, finetune::kMaxLabelsShown))
                              : ", a number each")});
  if (examples_.skipped > 0) {
    facts_.decisions.push_back(fmt::format("{} lines of {} have too few fields and were left out",
                                           examples_.skipped, examples_.source));
  }
  if (!examples_.unread.empty()) facts_.decisions.push_back(examples_.unread);
  if (!examples_.left_out.empty()) facts_.decisions.push_back(examples_.left_out);
}

// Reports how many texts were truncated.
finetune::EncodedExamples ClassifyTask::encoded(const finetune::Examples& examples, int threads) {
  finetune::EncodedExamples sequences(examples.all, description_.vocabulary, description_.casing,
                                      {.max_sequence_length = config_.max_sequence_length,
                                       .has_pairs = examples.has_pairs,
                                       .threads = threads});
  finetune::report_cut({.source = examples.source,
                        .cut = sequences.cut(),
                        .all = sequences.size(),
                        .max_sequence_length = config_.max_sequence_length,
                        .pairs = examples.has_pairs},
                       facts_.decisions);
  return sequences;
}

void ClassifyTask::choose_metrics() {
  const std::vector<std::string>& labels = description_.classifier.labels;
  if (!config_.positive_label.empty()) {
    score_options_.positive = classify::index_of_label(
        labels, config_.positive_label, config_.engine.place + ": key `classify.positive_label`");
  }
  score_options_.threshold = config_.threshold;
  const auto found = training::find_kept_by(
      classify::metric_names(targets_.problem, targets_.outputs), config_.best_by);
  require(found.has_value(),
          "{}: key `classify.best_by` is {}, which needs two labels; there are {}: use f1_macro",
          config_.engine.place, config_.best_by, labels.size());
  facts_.kept_by = *found;
}

void ClassifyTask::open_dev_data(const DevFile& file, int threads) {
  finetune::Examples examples =
      classify::read_labelled(file.path, config_.layout, config_.label_format);
  require(examples.has_pairs == examples_.has_pairs,
          "{}: of this file and {}, one contains pairs of texts, the other single texts",
          file.path.string(), examples_.source);
  Targets targets =
      classify::targets_of(examples, config_.label_format, description_.classifier.labels);
  finetune::EncodedExamples sequences = encoded(examples, threads);
  add_dev_file(file.path.string(), fmt::format("{} examples", sequences.size()),
               finetune::bounds_of(sequences, config_.prediction_batch),
               finetune::checksum(examples));
  if (!examples.left_out.empty()) facts_.decisions.push_back(examples.left_out);
  dev_.push_back({file, std::move(examples), std::move(targets), std::move(sequences)});
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

void ClassifyTask::declare(ParameterTable& table) {
  model_ = std::make_unique<ClassificationModel>(
      description_.config,
      ClassifierHead{.outputs = targets_.outputs,
                     .kind = kind_of(targets_.problem),
                     .dropout = description_.classifier.dropout,
                     .weights = class_weights()},
      table);
}

finetune::DataIdentity ClassifyTask::identity() const {
  return {{{"labels", description_.classifier.labels},
           {"examples", examples_.all.size()},
           {"data", finetune::checksum(examples_)}},
          examples_.source,
          "texts or labels"};
}

std::unique_ptr<training::BatchSource> ClassifyTask::make_source(const training::StreamShare& share,
                                                                 Json identity) {
  return std::make_unique<finetune::ItemSource<ExampleStream>>(
      ExampleStream(*encoded_, targets_, share, examples_.source), std::move(identity));
}

std::string ClassifyTask::fill(ParameterTable& table) {
  finetune::InitialValues first = {.model = model_folder_,
                                   .heads = {model::kPooler, model::kClassifierHead},
                                   .seed = config_.engine.run.seed};
  if (!keeps_head_) first.replaced = {model::kClassifierHead};
  return finetune::fill_from_model(table, first);
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

training::Evaluation ClassifyTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                            comm::Communicator& communicator) {
  const Stopwatch watch;
  std::vector<metrics::Metric> record;
  scores_.clear();
  for (const Dev& dev : dev_) {
    const std::vector<float> outputs = predict_outputs(
        context, *model_, dev.encoded, config_.prediction_batch, buffer, communicator);
    scores_.push_back(
        classify::score(dev.targets, description_.classifier.labels, outputs, score_options_));
    const std::string prefix = scores_.size() == 1 ? "" : dev.file.name + "_";
    for (metrics::Metric metric : scores_.back().metrics) {
      metric.name = prefix + metric.name;
      record.push_back(std::move(metric));
    }
    record.push_back({prefix + "examples", static_cast<double>(dev.encoded.size()), true});
  }
  return evaluation_of(std::move(record), watch);
}

std::string ClassifyTask::describe(const std::vector<metrics::Metric>& record) const {
  std::vector<metrics::Metric> shown = record;
  // The micro F1 of single labels is their accuracy.
  std::erase_if(shown, [&](const metrics::Metric& metric) {
    return targets_.problem == Problem::kSingleLabel && metric.name.ends_with("f1_micro") &&
           metric.name != facts_.kept_by.metric;
  });
  return metrics::text_of(shown, facts_.kept_by.metric);
}

void ClassifyTask::write_beside_model(const Path& folder) const {
  Json files = Json::array();
  for (size_t i = 0; i < scores_.size(); ++i) {
    Json scores = {{"file", dev_[i].file.path.string()}};
    scores.update(classify::json_of(scores_[i]));
    files.push_back(std::move(scores));
  }
  write_scores(folder, files);
}

std::unique_ptr<training::Task> make_classify_task(Context& context,
                                                   const training::RunOptions& run,
                                                   const training::TaskInputs& inputs,
                                                   const training::Connection& connection) {
  finetune::require_one_file(inputs);
  ClassifyTrainingOptions options{run, inputs.model, inputs.train.front().first, {}};
  for (const training::NamedInput& file : inputs.dev) options.dev.push_back({file.path, file.name});
  return std::make_unique<ClassifyTask>(context, options, connection);
}

ExampleStream::ExampleStream(const finetune::EncodedExamples& examples, const Targets& targets,
                             const batches::DealOptions& options, const std::string& source)
    : examples_(examples),
      targets_(targets),
      dealer_(examples.lengths(), options, fmt::format("{}: {} examples", source, examples.size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(examples.size() == targets.examples());
}

void ExampleStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    examples_.append(dealt.item, dealt.sample, batch);
    if (targets_.problem == Problem::kSingleLabel) {
      batch.sequence_labels.push_back(targets_.classes[dealt.item]);
    } else {
      const auto first = targets_.values.begin() + int64_t{dealt.item} * targets_.outputs;
      batch.sequence_values.insert(batch.sequence_values.end(), first, first + targets_.outputs);
    }
  }
}

batches::BatchBounds ExampleStream::bounds() const {
  batches::BatchBounds bounds = finetune::bounds_of(examples_, micro_batch_);
  if (targets_.problem != Problem::kSingleLabel) {
    bounds.sequence_values = micro_batch_ * targets_.outputs;
  }
  return bounds;
}

}  // namespace onebit::classify
