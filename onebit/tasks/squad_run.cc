#include "onebit/tasks/squad_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "onebit/base/clock.h"
#include "onebit/base/folder.h"
#include "onebit/base/log.h"
#include "onebit/training/step_costs.h"

namespace onebit::tasks {
namespace {

// What the model in the folder of the run came to when it was kept.
constexpr const char* kEvaluationFile = "evaluation.json";

Json to_json(const BestSquadModel& best) {
  return {
      {"step", best.step}, {"exact", best.exact}, {"f1", best.f1}, {"questions", best.questions}};
}

BestSquadModel best_from(JsonReader json) {
  return {.exact = json.number("exact", 0),
          .f1 = json.number("f1", 0),
          .questions = json.integer("questions", 0),
          .step = json.integer("step", 0)};
}

training::ModelDescription describe_model(const Path& model, const SquadConfig& config) {
  training::ModelDescription description =
      training::read_model_description(training::find_model_folder(model));
  description.config = squad_model(config, description.config);
  description.architecture = "BertForQuestionAnswering";
  return description;
}

// The update in which sample number `sample` (from 1) is used up.
int64_t update_of(int64_t sample, int64_t batch) {
  return (sample + batch - 1) / batch;
}

}  // namespace

SquadRun::SquadRun(Context& context, const SquadTrainingOptions& options,
                   comm::Communicator& communicator)
    : context_(context),
      communicator_(communicator),
      recipe_(options.recipe),
      output_(options.output),
      config_(parse_squad_recipe(options.recipe, options.recipe_place)),
      description_(describe_model(options.model, config_)),
      checkpoints_(communicator, options.output, config_.engine.run.keep_last) {
  open_data(options);
  choose_steps();
  model_ = std::make_unique<model::QuestionAnsweringModel>(description_.config, table_);
  table_.allocate(context.device(), config_.engine.compute);
  engine_ = std::make_unique<engine::Engine>(context, table_, config_.engine, communicator);
  stream_ = std::make_unique<data::SpanStream>(
      *train_features_, data::SpanStreamOptions{.seed = config_.engine.run.seed,
                                                .world_size = communicator.world_size(),
                                                .rank = communicator.rank(),
                                                .micro_batch = engine_->batch().micro,
                                                .accumulation = engine_->batch().accumulation});
  plan_memory();
  restore(options);
}

void SquadRun::open_data(const SquadTrainingOptions& options) {
  const auto tell = [&](const data::SquadDataset& dataset) {
    const std::string problems = data::problem_summary(dataset);
    if (!problems.empty() && communicator_.rank() == 0) {
      log_warning("{}: {}", dataset.source, problems);
    }
  };
  train_data_ = data::read_squad(options.train, data::SquadUse::kTrain);
  tell(train_data_);
  data::SquadFeatureOptions features = config_.features;
  features.use = data::SquadUse::kTrain;
  features.threads = context_.threads();
  using data::WindowsWithoutAnswer;
  features.without_answer = config_.without_answer.value_or(
      has_unanswerable(train_data_) ? WindowsWithoutAnswer::kToCls : WindowsWithoutAnswer::kDrop);
  train_features_ = std::make_unique<data::SquadFeatures>(train_data_, description_.vocabulary,
                                                          description_.casing, features);
  data_rows_.push_back(
      {"training data",
       fmt::format("{}: {} questions, {} windows", options.train.string(),
                   train_data_.questions.size(), train_features_->windows().size())});
  decisions_.push_back(fmt::format(
      "{} windows of {} questions; {} windows without their answer {}; {} questions cut",
      train_features_->windows().size(), train_data_.questions.size(),
      train_features_->windows_dropped(),
      features.without_answer == WindowsWithoutAnswer::kDrop ? "left out" : "(they point to [CLS])",
      train_features_->questions_cut()));
  if (!options.dev) return;
  dev_ = std::make_unique<SquadDev>(*options.dev, description_, config_.features, config_.decode,
                                    config_.prediction_batch, context_.threads());
  tell(dev_->dataset());
  data_rows_.push_back({"judged on", fmt::format("{}: {} questions", options.dev->string(),
                                                 dev_->dataset().questions.size())});
}

void SquadRun::choose_steps() {
  engine::RunConfig& run = config_.engine.run;
  if (run.steps > 0) return;
  const engine::BatchSizes batch = engine::solve_batch_sizes(
      config_.engine.batch, communicator_.world_size(), config_.engine.place);
  const double windows = config_.epochs * static_cast<double>(train_features_->windows().size());
  run.steps =
      std::max<int64_t>(1, update_of(static_cast<int64_t>(std::ceil(windows)), batch.train));
  decisions_.push_back(fmt::format("{} epochs are {} steps", config_.epochs, run.steps));
}

void SquadRun::plan_memory() {
  data::BatchBounds bounds = stream_->bounds();
  if (dev_) {
    bounds = {.sequences = std::max(bounds.sequences, dev_->bounds().sequences),
              .rows = std::max(bounds.rows, dev_->bounds().rows)};
  }
  buffer_.emplace(context_.device(), bounds);
  const model::MemoryPlan booked =
      model_->plan(context_, training::limits_of(bounds), config_.memory, true);
  memory_ = model::memory_report(table_, booked, config_.engine.compute);
  batch_.reserve(bounds);
}

void SquadRun::restore(const SquadTrainingOptions& options) {
  if (options.resume) {
    if (const auto saved = checkpoints_.open(options.tag)) {
      training::read_client_state(output_, [&] { resume(*saved); });
      choose_best(!options.tag.empty());
      return;
    }
    decisions_.push_back("no checkpoint yet, starting from the beginning");
  }
  table_.initialize(config_.engine.run.seed);
  const Path folder = training::find_model_folder(options.model);
  training::load_values(table_, folder, {.may_lack = {"qa_outputs."}, .may_ignore = kNotForSquad});
  initial_values_ = fmt::format("{}; what it has not, fresh with seed {}", folder.string(),
                                config_.engine.run.seed);
  engine_->broadcast_values();
}

// After a resume: the best so far is that of the model in the folder. A run taken back to an older
// checkpoint may find one there that it has not made yet.
void SquadRun::choose_best(bool taken_back) {
  if (!dev_) return best_.reset();
  const Path path = output_ / kEvaluationFile;
  std::optional<BestSquadModel> kept;
  if (std::filesystem::exists(path))
    kept = best_from(JsonReader(read_json(path), path.string(), ""));
  if (!taken_back) {
    if (kept) best_ = kept;
  } else if (best_ && (!kept || kept->step != best_->step)) {
    best_.reset();
    decisions_.push_back(
        "went back: the folder holds another model than the best so far, so the next evaluation "
        "counts as the best");
  }
}

void SquadRun::resume(const engine::SavedCheckpoint& saved) {
  for (auto& line : training::restore_run(saved, description_, recipe_, table_, *engine_,
                                          communicator_.world_size())) {
    decisions_.push_back(std::move(line));
  }
  const Json& state = saved.client_state;
  if (state.value("data", uint32_t{0}) != data::checksum(train_data_)) {
    decisions_.push_back("not as it was: --train holds other questions or passages");
  }
  require(state.value("windows", uint64_t{0}) == train_features_->windows().size(),
          "{}: the run was started on other training data or with other windows ({} of them, now "
          "{})",
          saved.model_folder.string(), state.value("windows", uint64_t{0}),
          train_features_->windows().size());
  samples_ = state.at("samples").get<int64_t>();
  if (state.contains("best")) best_ = best_from(JsonReader(state, "state.json", "").object("best"));
  resumed_ = true;
  initial_values_ = fmt::format("the checkpoint {}", saved.model_folder.parent_path().string());
}

training::StartFacts SquadRun::facts() {
  return {.model = description_.config,
          .memory = memory_,
          .table = table_,
          .sequences = fmt::format("windows of at most {} tokens, without padding",
                                   config_.features.max_sequence_length),
          .data = data_rows_,
          .initial_values = initial_values_,
          .decisions = decisions_,
          .pass = measured_pass()};
}

std::function<training::PassTimes()> SquadRun::measured_pass() {
  stream_->build(static_cast<uint64_t>(samples_), 0, batch_);
  return [this] {
    return training::time_pass(
        context_, config_.engine.run.seed, [&](const model::TrainingPass& pass) {
          model_->forward_backward(context_, buffer_->upload(context_, batch_), 1.0, pass);
        });
  };
}

training::StepRecord SquadRun::train_step() {
  const Stopwatch watch;
  const engine::BatchSizes& sizes = engine_->batch();
  const double weight =
      static_cast<double>(communicator_.world_size()) / static_cast<double>(sizes.train);
  training::StepRecord record;
  double loss = 0, tokens = 0;
  for (int64_t micro_step = 0; micro_step < sizes.accumulation; ++micro_step) {
    Stopwatch data;
    stream_->build(static_cast<uint64_t>(samples_), micro_step, batch_);
    record.data_seconds += data.seconds();
    tokens += static_cast<double>(batch_.rows());
    engine_->backward([&](const engine::BackwardInput& input) {
      Stopwatch pass;
      const auto forward_done = [&] { record.forward_seconds += pass.restart(); };
      loss += model_
                  ->forward_backward(context_, buffer_->upload(context_, batch_), weight,
                                     {.dropout_seed = config_.engine.run.seed,
                                      .loss_scale = input.loss_scale,
                                      .gradients_ready = input.gradients_ready,
                                      .forward_done = forward_done})
                  .loss_sum;
      if (micro_step + 1 == sizes.accumulation) context_.synchronize();
      record.backward_seconds += pass.seconds();
    });
  }
  std::array<double, 2> totals = {loss, tokens};
  comm::Request totals_ready =
      communicator_.start_all_reduce(std::span<double>(totals), comm::Reduction::kSum);
  record.outcome = engine_->step().value();
  totals_ready.wait();
  samples_ += sizes.train;
  record.samples = samples_;
  record.step_samples = sizes.train;
  record.step_tokens = static_cast<int64_t>(totals[1]);
  record.loss = totals[0] / static_cast<double>(sizes.train);
  record.metrics = {
      {"epoch", static_cast<double>(samples_) / static_cast<double>(stream_->samples_per_epoch())}};
  record.seconds = watch.seconds();
  return record;
}

bool SquadRun::evaluation_is_due(const training::StepRecord& record) const {
  const int64_t step = record.outcome.step;
  if (!dev_ || step == evaluated_step_) return false;
  if (step == config_.engine.run.steps) return true;
  const auto epoch = static_cast<int64_t>(stream_->samples_per_epoch());
  return record.samples / epoch > (record.samples - record.step_samples) / epoch;
}

void SquadRun::evaluate_into(training::TrainingLog& log) {
  const Stopwatch watch;
  BestSquadModel now = dev_->evaluate(context_, *model_, *buffer_, communicator_);
  now.step = evaluated_step_ = engine_->completed_steps();
  const bool better = !best_ || now.f1 > best_->f1;
  log.evaluated(now.step, samples_,
                {.key = "squad",
                 .metrics = {{"exact_match", now.exact},
                             {"f1", now.f1},
                             {"questions", static_cast<double>(now.questions), true},
                             {"seconds", watch.seconds()}},
                 .line = fmt::format("EM {:.2f}, F1 {:.2f}{}", now.exact, now.f1,
                                     better ? ", the best so far: kept" : "")});
  if (!better) return;
  best_ = now;
  if (communicator_.rank() == 0) {
    keep_model();
    dev_->write_answers(output_);
  }
}

training::Rows SquadRun::results() const {
  if (!best_) return {};
  return {{"best model", fmt::format("EM {:.2f}, F1 {:.2f} on {} questions, step {}", best_->exact,
                                     best_->f1, best_->questions, best_->step)}};
}

void SquadRun::keep_model() {
  const Path beside = output_ / "next-model";
  std::filesystem::remove_all(beside);
  make_folder(beside);
  training::ValueSnapshot(table_).write(beside, description_);
  const std::filesystem::directory_iterator files(beside);
  const std::vector<std::filesystem::directory_entry> written(begin(files), end(files));
  std::filesystem::remove(output_ / kEvaluationFile);
  for (const auto& file : written) rename_durably(file.path(), output_ / file.path().filename());
  std::filesystem::remove(beside);
  if (best_) write_file_atomically(output_ / kEvaluationFile, to_json(*best_).dump(2) + "\n");
}

void SquadRun::save_checkpoint() {
  Json state = {{"samples", samples_},
                {"windows", train_features_->windows().size()},
                {"data", data::checksum(train_data_)}};
  if (best_) state["best"] = to_json(*best_);
  training::save_run(checkpoints_, *engine_, table_, description_, recipe_, std::move(state));
  if (!dev_ && finished() && communicator_.rank() == 0) keep_model();
}

}  // namespace onebit::tasks
