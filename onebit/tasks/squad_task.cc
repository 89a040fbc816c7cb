#include "onebit/tasks/squad_task.h"

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/tasks/squad_batch.h"
#include "onebit/training/epochs.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {
namespace {

class SquadSource : public training::BatchSource {
 public:
  SquadSource(const squad::Features& features, uint32_t checksum, const data::DealOptions& options)
      : checksum_(checksum), stream_(features, options) {}

  std::unique_ptr<training::HostBatch> make_batch() const override {
    auto batch = std::make_unique<SquadBatch>();
    batch->batch.reserve(stream_.bounds());
    return batch;
  }
  void build(uint64_t first_sample, int64_t micro_step, training::HostBatch& batch) override {
    stream_.build(first_sample, micro_step, static_cast<SquadBatch&>(batch).batch);
  }
  data::BatchBounds bounds() const override { return stream_.bounds(); }
  uint64_t samples_per_epoch() const override { return stream_.samples_per_epoch(); }
  Json position(uint64_t /*samples*/) override {
    return {{"windows", stream_.samples_per_epoch()}, {"data", checksum_}};
  }

 private:
  uint32_t checksum_;
  squad::SpanStream stream_;
};

training::ModelDescription describe_model(const Path& model, const SquadConfig& config) {
  training::ModelDescription description =
      training::read_model_description(training::find_model_folder(model));
  description.config = squad_model(config, description.config);
  description.architecture = "BertForQuestionAnswering";
  return description;
}

void report_problems(const squad::Dataset& dataset, bool is_first) {
  const std::string problems = squad::problem_summary(dataset);
  if (!problems.empty() && is_first) log_warning("{}: {}", dataset.source, problems);
}

}  // namespace

SquadTask::SquadTask(Context& context, const SquadTrainingOptions& options,
                     comm::Communicator& communicator)
    : model_folder_(options.model),
      config_(parse_squad_recipe(options.recipe, options.recipe_place)),
      description_(describe_model(options.model, config_)) {
  const bool is_first = communicator.rank() == 0;
  open_train_data(options.train, context.threads(), is_first);
  if (options.dev) open_dev_data(*options.dev, context.threads(), is_first);
  choose_steps(communicator.world_size());
}

void SquadTask::open_train_data(const Path& path, int threads, bool is_first) {
  train_data_ = squad::read_dataset(path, squad::Use::kTrain);
  report_problems(train_data_, is_first);
  squad::FeatureOptions features = config_.features;
  features.use = squad::Use::kTrain;
  features.threads = threads;
  using squad::WindowsWithoutAnswer;
  features.without_answer = config_.without_answer.value_or(squad::has_unanswerable(train_data_)
                                                                ? WindowsWithoutAnswer::kToCls
                                                                : WindowsWithoutAnswer::kDrop);
  train_features_ = std::make_unique<squad::Features>(train_data_, description_.vocabulary,
                                                      description_.casing, features);
  data_rows_.push_back({"training data", fmt::format("{}: {} questions, {} windows", path.string(),
                                                     train_data_.questions.size(),
                                                     train_features_->windows().size())});
  decisions_.push_back(fmt::format(
      "{} windows of {} questions; {} windows without their answer {}; {} questions cut",
      train_features_->windows().size(), train_data_.questions.size(),
      train_features_->windows_dropped(),
      features.without_answer == WindowsWithoutAnswer::kDrop ? "left out" : "(they point to [CLS])",
      train_features_->questions_cut()));
}

void SquadTask::open_dev_data(const Path& path, int threads, bool is_first) {
  dev_ = std::make_unique<SquadDev>(path, description_, config_.features, config_.decode,
                                    config_.prediction_batch, threads);
  report_problems(dev_->dataset(), is_first);
  data_rows_.push_back({"judged on", fmt::format("{}: {} questions", path.string(),
                                                 dev_->dataset().questions.size())});
}

void SquadTask::choose_steps(int world_size) {
  if (config_.engine.run.steps > 0) return;
  decisions_.push_back(training::choose_steps(config_.engine, config_.epochs,
                                              train_features_->windows().size(), world_size));
}

void SquadTask::declare(params::Table& table) {
  model_ = std::make_unique<model::QuestionAnsweringModel>(description_.config, table);
}

std::unique_ptr<training::BatchSource> SquadTask::open(const training::StreamShare& share,
                                                       const Json* /*saved*/) {
  return std::make_unique<SquadSource>(*train_features_, squad::checksum(train_data_),
                                       share.dealt());
}

data::BatchBounds SquadTask::evaluation_bounds() const {
  return dev_ ? dev_->bounds() : data::BatchBounds{};
}

model::MemoryPlan SquadTask::plan(Context& context, const model::BatchLimits& limits) {
  return model_->plan(context, limits, config_.memory, true);
}

std::string SquadTask::fill(params::Table& table) {
  const uint64_t seed = config_.engine.run.seed;
  table.initialize(seed);
  const Path folder = training::find_model_folder(model_folder_);
  training::load_values(table, folder, {.may_lack = {"qa_outputs."}, .may_ignore = kNotForSquad});
  return fmt::format("{}; tensors it lacks are drawn with seed {}", folder.string(), seed);
}

std::vector<std::string> SquadTask::resume(const Json& client_state, const std::string& place) {
  const size_t windows = train_features_->windows().size();
  require(client_state.value("windows", uint64_t{0}) == windows,
          "{}: the run was started on other training data or with other windows ({} of them, now "
          "{})",
          place, client_state.value("windows", uint64_t{0}), windows);
  if (client_state.value("data", uint32_t{0}) == squad::checksum(train_data_)) return {};
  return {"changed: --train contains other questions or passages"};
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
  const DevScore score = dev_->evaluate(context, *model_, buffer, communicator);
  const auto questions = static_cast<double>(score.questions);
  return {.key = "squad",
          .metrics = {{"exact_match", score.exact},
                      {"f1", score.f1},
                      {"questions", questions, true},
                      {"seconds", watch.seconds()}},
          .line = fmt::format("EM {:.2f}, F1 {:.2f}", score.exact, score.f1),
          .record = {{"exact", score.exact}, {"f1", score.f1}, {"questions", questions, true}}};
}

std::string SquadTask::describe(const std::vector<metrics::Metric>& record) const {
  const auto value = [&](const char* name) { return metrics::value_of(record, name); };
  return fmt::format("EM {:.2f}, F1 {:.2f} on {} questions", value("exact"), value("f1"),
                     static_cast<int64_t>(value("questions")));
}

void SquadTask::write_beside_model(const Path& folder) const {
  dev_->write_answers(folder);
}

std::string SquadTask::sequences() const {
  return fmt::format("windows of at most {} tokens, without padding",
                     config_.features.max_sequence_length);
}

training::RunSummary run_squad_training(Context& context, const SquadTrainingOptions& options,
                                        comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  SquadTask task(context, options, communicator);
  return training::run_training(context, task, options, communicator);
}

}  // namespace onebit::tasks
