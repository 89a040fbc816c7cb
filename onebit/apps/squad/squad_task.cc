#include "onebit/apps/squad/squad_task.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "onebit/apps/squad/answer_files.h"
#include "onebit/apps/squad/features.h"
#include "onebit/apps/squad/score.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/fine_tuning_task.h"

namespace onebit::squad {
namespace {

training::ModelDescription describe_model(const Path& model, const SquadConfig& config) {
  training::ModelDescription description = finetune::with_recipe(
      config, training::read_model_description(training::find_model_folder(model)));
  // Some families have keys of their own for either head.
  if (config.classifier_dropout) description.answer_dropout = *config.classifier_dropout;
  description.architecture = model::kAnswerArchitecture;
  return description;
}

void report_problems(const Dataset& dataset, bool is_first) {
  const std::string problems = squad::problem_summary(dataset);
  if (!problems.empty() && is_first) log_warning("{}: {}", dataset.source, problems);
}

}  // namespace

SquadTask::SquadTask(Context& context, const finetune::FineTuningOptions& options,
                     const training::Connection& connection)
    : FineTuningTask(options.model, parse_squad_recipe(options.recipe)) {
  description_ = describe_model(options.model, config_);
  finetune::warn_of_pairs_without_segments(description_, options.model);
  config_.features = squad::within(
      config_.features, finetune::fitting_length(config_, config_.features.max_sequence_length,
                                                 description_, facts_.decisions));
  const comm::Communicator& communicator = open_ranks(connection);
  const bool is_first = communicator.rank() == 0;
  open_train_data(options.train, context.threads(), is_first);
  if (!options.dev.empty()) open_dev_data(options.dev, context.threads(), is_first);
  choose_steps(train_features_->windows().size(), communicator.world_size());
  facts_.name = kSquadTask;
  facts_.use = "onebit squad ask --model {} \"A question?\" --context FILE";
  facts_.kept_by = {.metric = "f1"};
  facts_.sequences = fmt::format("windows of at most {} tokens, without padding",
                                 config_.features.max_sequence_length);
}

void SquadTask::open_train_data(const Path& path, int threads, bool is_first) {
  train_data_ = squad::read_dataset(path, Use::kTrain, config_.left_out);
  report_problems(train_data_, is_first);
  FeatureOptions features = config_.features;
  features.use = Use::kTrain;
  features.threads = threads;
  // The model folder keeps this, since whether a system abstains must not depend on its input.
  const bool unanswerable = squad::has_unanswerable(train_data_);
  description_.may_be_unanswerable = unanswerable;
  const bool is_never_answered = std::ranges::all_of(
      train_data_.questions, [](const Question& one) { return one.impossible; });
  require(
      !is_never_answered,
      "{}: no question has an answer (is_impossible), so that the model would only learn to give "
      "none",
      path.string());
  features.without_answer = config_.without_answer.value_or(
      unanswerable ? WindowsWithoutAnswer::kToCls : WindowsWithoutAnswer::kDrop);
  train_features_ = std::make_unique<Features>(train_data_, description_.vocabulary,
                                               description_.casing, features);
  facts_.data_rows.push_back(
      {"training data",
       fmt::format("{}: {} questions, {} windows", path.string(), train_data_.questions.size(),
                   train_features_->windows().size())});
  facts_.decisions.push_back(fmt::format(
      "{} windows of {} questions; {} windows without their answer {}; {} questions truncated",
      train_features_->windows().size(), train_data_.questions.size(),
      train_features_->windows_dropped(),
      features.without_answer == WindowsWithoutAnswer::kDrop ? "left out" : "(they point to [CLS])",
      train_features_->questions_cut()));
  facts_.decisions.push_back(squad::describe_abstaining(unanswerable, "the training data"));
}

void SquadTask::open_dev_data(const Path& path, int threads, bool is_first) {
  dev_ = std::make_unique<Dev>(
      Dev{.questions = squad::read_dataset(path, Use::kPredict, config_.left_out),
          .answered = squad::read_dataset(path, Use::kScore, config_.left_out),
          .decode = config_.decode,
          .features = nullptr,
          .answers = {}});
  FeatureOptions features = config_.features;
  features.use = Use::kPredict;
  features.threads = threads;
  dev_->features = std::make_unique<Features>(dev_->questions, description_.vocabulary,
                                              description_.casing, features);
  report_problems(dev_->questions, is_first);
  const bool found = squad::has_unanswerable(dev_->questions);
  dev_->decode.may_be_unanswerable = description_.may_be_unanswerable.value_or(found);
  if (found != description_.may_be_unanswerable) {
    facts_.decisions.push_back(fmt::format(
        "{} {} questions without an answer, unlike the training data, which decide whether the "
        "model abstains",
        path.string(), found ? "has" : "has no"));
  }
  add_dev_file(path.string(), fmt::format("{} questions", dev_->questions.questions.size()),
               bounds_of(*dev_->features, config_.prediction_batch),
               squad::checksum(dev_->questions));
}

void SquadTask::declare(ParameterTable& table) {
  model_ = std::make_unique<QuestionAnsweringModel>(description_.config, table,
                                                    description_.answer_dropout);
}

finetune::DataIdentity SquadTask::identity() const {
  return {{{"windows", train_features_->windows().size()}, {"data", squad::checksum(train_data_)}},
          train_data_.source,
          "questions or passages"};
}

std::unique_ptr<training::BatchSource> SquadTask::make_source(const training::StreamShare& share,
                                                              Json identity) {
  return std::make_unique<finetune::ItemSource<SpanStream>>(SpanStream(*train_features_, share),
                                                            std::move(identity));
}

std::string SquadTask::fill(ParameterTable& table) {
  return finetune::fill_from_model(
      table, {.model = model_folder_,
              .heads = finetune::heads_of_tokens(description_.config, model::kAnswerHead),
              .seed = config_.engine.run.seed});
}

training::Sums SquadTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                           const training::StepItems& items,
                                           const model::TrainingPass& pass) {
  return {model_->forward_backward(context, batch, items.weight(items.samples), pass).loss_sum};
}

training::StepMetrics SquadTask::metrics(const training::StepSums& step) const {
  const auto windows = static_cast<double>(train_features_->windows().size());
  return {.loss = step.sums[0] / static_cast<double>(step.items.samples),
          .metrics = {{"epoch", static_cast<double>(step.samples) / windows}}};
}

training::Evaluation SquadTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                         comm::Communicator& communicator) {
  const Stopwatch watch;
  const SpanLogits logits = predict_logits(context, *model_, *dev_->features,
                                           config_.prediction_batch, buffer, communicator);
  std::array<double, 2> score{};  // exact match and F1, in percent, equal on all ranks
  if (communicator.rank() == 0) {
    dev_->answers = squad::decode_answers(*dev_->features, logits, dev_->decode, context.threads());
    const Score scored = squad::score_predictions(
        dev_->answered, squad::predictions_of(dev_->questions, dev_->answers),
        squad::rules_for(dev_->answered));
    score = {scored.all.exact, scored.all.f1};
  }
  communicator.broadcast(std::as_writable_bytes(std::span(score)), 0);
  const auto [exact, f1] = score;
  const auto questions = static_cast<double>(dev_->answered.questions.size());
  return {.key = "squad",
          .metrics = {{"exact_match", exact},
                      {"f1", f1},
                      {"questions", questions, true},
                      {"seconds", watch.seconds()}},
          .line = fmt::format("EM {:.2f}, F1 {:.2f}", exact, f1),
          .record = {{"exact", exact}, {"f1", f1}, {"questions", questions, true}}};
}

std::string SquadTask::describe(const std::vector<metrics::Metric>& record) const {
  const auto value = [&](const char* name) { return metrics::value_of(record, name); };
  return fmt::format("EM {:.2f}, F1 {:.2f} on {} questions", value("exact"), value("f1"),
                     static_cast<int64_t>(value("questions")));
}

void SquadTask::write_beside_model(const Path& folder) const {
  squad::write_answers(
      {.predictions = folder / "predictions.json",
       .n_best = folder / "nbest_predictions.json",
       .null_odds = dev_->decode.may_be_unanswerable ? folder / "null_odds.json" : Path()},
      dev_->questions, dev_->answers);
}

std::unique_ptr<training::Task> make_squad_task(Context& context, const training::RunOptions& run,
                                                const training::TaskInputs& inputs,
                                                const training::Connection& connection) {
  return std::make_unique<SquadTask>(context, finetune::options_of(run, inputs), connection);
}

}  // namespace onebit::squad
