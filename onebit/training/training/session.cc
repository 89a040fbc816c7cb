#include "onebit/training/training/session.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/device/profile.h"
#include "onebit/training/costs/step_costs.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/disk_files.h"
#include "onebit/training/training/rank_agreement.h"
#include "onebit/training/training/run_folder.h"

namespace onebit::training {
namespace {

// Members of a checkpoint's client state.
constexpr const char* kFirstValues = "first_values";
constexpr const char* kHeldOut = "held_out";  // checksums of the data of evaluations

// A metric without a value, such as a correlation where all labels are equal.
void warn_of_undefined(const std::string& metric, const std::vector<metrics::Metric>& record) {
  if (metric.empty() || !std::isnan(metrics::value_of(record, metric))) return;
  log_warning(
      "{} has no value here (a correlation of labels that are all equal has none), so this "
      "evaluation does not decide about the best model; best_by selects another metric",
      metric);
}

// The recipe of the default task need not name it. In early versions no recipe named its task: the
// saved model then shows the task.
void require_same_task(const checkpoint::SavedCheckpoint& saved, const Task& task) {
  const std::string& name = task.facts().name;
  const std::string written =
      saved.client_state.value("/recipe/task"_json_pointer, std::string(kDefaultTask));
  const auto has_its_model = [&] {
    return read_model_description(saved.model_folder).architecture ==
           task.description().architecture;
  };
  require(
      written == name || (written == kDefaultTask && has_its_model()),
      "{}: belongs to a run of the task {}, but this command trains the task {}: resume it with "
      "its own command, or give another --output",
      saved.model_folder.parent_path().string(), written, name);
}

// Adds the task's name unless it is the default task, which a recipe without a name means.
Json named(Json recipe, std::string_view task) {
  if (task != kDefaultTask && !recipe.contains("task")) recipe["task"] = task;
  return recipe;
}

}  // namespace

Session::Session(Context& context, Task& task, const RunOptions& options,
                 comm::Communicator& communicator)
    : context_(context),
      task_(task),
      communicator_(communicator),
      recipe_(named(options.recipe.values, task.facts().name)),
      checkpoints_(communicator, options.output, task.session_config().keep_last,
                   task.session_config().checkpoint_copies),
      best_(options.output, task.facts().kept_by) {
  require_same_start(options);
  task_.declare(table_);
  table_.allocate(context.device(), task.config().compute);
  engine_ = std::make_unique<engine::Engine>(context, table_, task.config(), communicator);
  std::optional<checkpoint::SavedCheckpoint> saved;
  if (options.resume) saved = checkpoints_.open(options.tag);
  open(saved ? &*saved : nullptr);
  plan_memory();
  restore(options, saved ? &*saved : nullptr);
  start_prefetch();
}

// Checked before the first collective whose sizes follow from the recipe or the model.
void Session::require_same_start(const RunOptions& options) {
  require_same_on_all(communicator_, {{"resume", options.resume}, {"tag", options.tag}}, "--resume",
                      "start every rank with the same options");
  require_same_on_all(
      communicator_, recipe_, fmt::format("{}: the recipe", task_.config().place),
      "start every rank with the same recipe and the same --set (on several machines, copy the "
      "recipe to all of them, or use onebit launch)");
  const ModelDescription& model = task_.description();
  Json sizes = {{"vocabulary_checksum", model.vocabulary->checksum()},
                {"family", model.config.family},
                {"pre_layer_norm", model.config.choices.norm_before},
                {"labels", model.classifier.labels}};
  for (const auto& [key, size] : model::kSizeKeys) sizes[key] = model.config.*size;
  require_same_on_all(communicator_, sizes, "the model",
                      "give every rank the same data, vocabulary and model to start from");
}

// Every rank takes its samples by the same numbers from its own machine's data.
void Session::require_same_data() {
  const Json data = {{"training_data", state_of_source(0)},
                     {"held_out_checksums", task_.facts().held_out_checksums}};
  require_same_on_all(communicator_, data, "the data",
                      "copy the same training and held-out data to every machine");
}

void Session::open(const checkpoint::SavedCheckpoint* saved) {
  const StreamShare share = {{.seed = task_.config().run.seed,
                              .world_size = communicator_.world_size(),
                              .rank = communicator_.rank(),
                              .micro_batch = engine_->batch().micro,
                              .accumulation = engine_->batch().accumulation,
                              .step_samples = engine_->batch().train},
                             context_.threads()};
  if (saved != nullptr) {
    require_same_task(*saved, task_);
    read_client_state(*saved, [&] { source_ = task_.open(share, &saved->client_state); });
  } else {
    source_ = task_.open(share, nullptr);
  }
  require_same_data();
  decisions_ = task_.facts().decisions;
  const Json held_out = task_.facts().held_out_checksums;
  held_out_changed_ = saved != nullptr && saved->client_state.value(kHeldOut, held_out) != held_out;
  if (held_out_changed_) {
    decisions_.emplace_back(
        "changed: the held-out data are others than before; compare no evaluation with those of "
        "this run's earlier steps. The next evaluation counts as the best");
  }
  std::string line = describe_disks(disks(), task_.session_config().checkpoint_copies);
  if (!line.empty()) decisions_.push_back(std::move(line));
}

double Session::share_of_disk() const {
  const checkpoint::Disks& disks = checkpoints_.disks();
  const int shards = disks.shards_on(disks.disk_of(communicator_.rank()),
                                     task_.session_config().checkpoint_copies);
  return static_cast<double>(shards) / communicator_.world_size();
}

CheckpointSpace Session::checkpoint_space() {
  return space_of_checkpoints(*engine_, task_.session_config(), share_of_disk());
}

void Session::plan_memory() {
  batches::BatchBounds bounds = source_->bounds();
  bounds.include(task_.facts().evaluation_bounds);
  buffer_.emplace(context_.device(), bounds, task_.description().uncounted_token());
  const model::MemoryPlan planned = task_.plan(context_, limits_of(bounds));
  memory_ = model::memory_report(table_, planned, task_.config().compute);
  for (int64_t i = 0; i < engine_->batch().accumulation; ++i) {
    step_batches_.push_back(make_batch());
  }
}

void Session::restore(const RunOptions& options, const checkpoint::SavedCheckpoint* saved) {
  if (saved != nullptr) {
    read_client_state(*saved, [&] { resume(*saved, options); });
    return;
  }
  if (options.resume) decisions_.emplace_back("no checkpoint yet, starting from the beginning");
  initial_values_ = task_.fill(table_);
  first_values_ = initial_values_;
  engine_->broadcast_values();
}

void Session::resume(const checkpoint::SavedCheckpoint& saved, const RunOptions& options) {
  const auto report = [this](std::vector<std::string> lines) {
    for (std::string& line : lines) decisions_.push_back(std::move(line));
  };
  report(saved.report);
  require_same_model(saved, task_.description());
  checkpoint::suggest_other_checkpoints(saved.other_tags,
                                        [&] { load_values(table_, saved.model_folder, {}); });
  // Done before the optimizer is loaded, which may put this rank's own values into the table.
  engine_->broadcast_values();
  saved.shards.serve_while([&] { engine_->load(saved.shards); });
  report(describe_resume(saved, recipe_, engine_->config(), communicator_.world_size()));
  const Json& state = saved.client_state;
  samples_ = state.at("samples").get<int64_t>();
  require(samples_ >= 0, "{}: damaged: `samples` is {}; resume from another checkpoint",
          (saved.model_folder.parent_path() / run_files::kState).string(), samples_);
  resumed_ = true;
  first_values_ = state.value(kFirstValues, "");
  initial_values_ = fmt::format("the checkpoint {}", saved.model_folder.parent_path().string());
  const auto is_preferred = [&](const Json& one, const Json& other) {  // what was the best then
    const Json then = state.value("/best/step"_json_pointer, Json());
    if (then.is_null()) return best_.is_better(one, other);
    return one.value("step", Json()) == then && other.value("step", Json()) != then;
  };
  share_run_files(communicator_, disks(), options.output, saved.step, is_preferred);
  had_no_steps_ = finished();
  if (!task_.facts().evaluations.any()) return;
  if (auto line = best_.resume(state, saved.step)) report({std::move(*line)});
  if (held_out_changed_) best_.forget();
}

batches::Batch Session::make_batch() const {
  batches::Batch batch;
  batch.reserve(source_->bounds());
  return batch;
}

void Session::start_prefetch() {
  const engine::BatchSizes& sizes = engine_->batch();
  ProfileTrack* const own = context_.profile_track();
  ProfileTrack* const track = own == nullptr ? nullptr : &own->profile().track("batches");
  const auto build = [this, sizes, track, first = samples_](int64_t ticket, batches::Batch& batch) {
    const PhaseSpan phase(track, "build batch");
    const int64_t step = ticket / sizes.accumulation;
    source_->build(static_cast<uint64_t>(first + step * sizes.train), ticket % sizes.accumulation,
                   batch);
    return true;
  };
  prefetcher_ = std::make_unique<batches::Prefetcher<batches::Batch>>(
      build, [this] { return make_batch(); }, batches::PrefetchOptions{});
}

bool Session::finished() const {
  return engine_->completed_steps() >= engine_->config().run.steps;
}

costs::AnnouncingPass Session::measured_pass() {
  const auto batch = std::make_shared<batches::Batch>(make_batch());
  const engine::BatchSizes& sizes = engine_->batch();
  const auto build = [&](int64_t index) {
    const int64_t step = index / sizes.accumulation;
    source_->build(static_cast<uint64_t>(samples_ + step * sizes.train), index % sizes.accumulation,
                   *batch);
  };
  const auto rows_of = [&](int64_t index) {
    build(index);
    return batch->rows();
  };
  const int64_t typical = typical_micro_step(rows_of, sizes.accumulation, communicator_);
  build(typical);
  const int64_t count = task_.facts().counts_items ? batch->labelled() : batch->sequences();
  const StepItems items = {.samples = batch->sequences(), .items = std::max<int64_t>(count, 1)};
  // A task may exchange something among the ranks that depends on the micro-step.
  const int64_t micro_step = typical % sizes.accumulation;
  return [this, batch, items, micro_step](const std::function<void(Range)>& ready) {
    return costs::time_pass(
        context_, engine_->config().run.seed,
        [&](const model::TrainingPass& timed) {
          model::TrainingPass pass = timed;
          pass.step = engine_->completed_steps();
          pass.micro_step = micro_step;
          run_pass(*batch, items, pass);
        },
        ready);
  };
}

int64_t Session::copied_bytes() {
  const bool keeps_best = leads_disk() && !task_.facts().kept_by.metric.empty();
  return checkpoint_copy_bytes(*engine_, communicator_.world_size(), leads_disk()) +
         (keeps_best ? table_.size_elements() * static_cast<int64_t>(sizeof(float)) : 0);
}

StartFacts Session::start_facts() {
  std::vector<model::MemoryRow> memory = memory_;
  if (engine_->packed_bytes() > 0) {
    memory.push_back({"packed copies of matrices", engine_->packed_bytes()});
  }
  // The copies take no memory of a GPU.
  if (table_.device().is_cpu()) memory.push_back({"copies for a checkpoint", copied_bytes()});
  return {.model = task_.description().config,
          .memory = std::move(memory),
          .table = table_,
          .sequences = task_.facts().sequences,
          .data = task_.facts().data_rows,
          .initial_values = initial_values_,
          .decisions = decisions_,
          .pass = measured_pass()};
}

bool Session::evaluation_is_due(const StepRecord& record) const {
  const EvaluationTimes times = task_.facts().evaluations;
  const int64_t step = record.outcome.step, every = task_.session_config().evaluate_every;
  if (!times.any() || step == evaluated_step_) return false;
  if (step == engine_->config().run.steps) return true;
  if (times.by_steps && record.outcome.applied && every > 0 && step % every == 0) return true;
  if (!times.by_epochs) return false;
  const auto epoch = static_cast<int64_t>(source_->samples_per_epoch());
  ONEBIT_INVARIANT(epoch > 0);
  return record.samples / epoch > (record.samples - record.step_samples) / epoch;
}

Evaluation Session::evaluate() {
  Evaluation evaluation = task_.evaluate(context_, *buffer_, communicator_);
  evaluated_step_ = engine_->completed_steps();
  last_ = evaluation;
  if (finished()) after_ = evaluation;
  return evaluation;
}

ModelCard Session::card() const {
  ModelCard card = {.task = task_.facts().name,
                    .step = engine_->completed_steps(),
                    .steps = engine_->config().run.steps,
                    .samples = samples_,
                    .initial_values = first_values_,
                    .data = task_.facts().data_rows,
                    .data_identity = source_->identity(),
                    .result = last_ ? task_.describe(last_->record) : "",
                    .result_step = evaluated_step_,
                    .recipe = recipe_};
  return card;
}

void Session::evaluate_into(TrainingLog& log) {
  engine_->with_common_values([&] {
    Evaluation evaluation = evaluate();
    const bool better = !task_.facts().kept_by.metric.empty() && best_.is_better(evaluation.record);
    if (better) evaluation.line += ", the best so far: kept";
    warn_of_undefined(task_.facts().kept_by.metric, evaluation.record);
    log.evaluated(evaluated_step_, samples_, evaluation);
    if (better) keep(evaluation);
  });
}

void Session::keep(const Evaluation& evaluation) {
  best_.set({.step = evaluated_step_, .record = evaluation.record});
  if (!leads_disk()) return;
  best_.write(table_, task_.description(), card());
  if (communicator_.rank() == 0) task_.write_beside_model(best_.folder());
}

void Session::before_training(TrainingLog& log) {
  if (resumed_ || !task_.facts().evaluations.first_values) return;
  before_ = evaluate();
  log.evaluated(0, 0, *before_);
}

void Session::after_training(TrainingLog& log) {
  // The model in the folder may be of steps that the run has gone back on.
  if (had_no_steps_ && keeps_last()) keep_last();
  const bool keeps_best = !task_.facts().kept_by.metric.empty() && !keeps_last();
  if (had_no_steps_ && keeps_best && !best_.best()) evaluate_into(log);
  const bool wanted = task_.facts().evaluations.first_values;
  if (!wanted || !finished() || after_) return;
  engine_->with_common_values([&] { evaluate(); });  // the log has it already
}

Rows Session::results() const {
  Rows rows;
  if (const auto& best = best_.best()) {
    rows.push_back(
        {"best model", fmt::format("{}, step {}", task_.describe(best->record), best->step)});
  }
  if (before_) rows.push_back({"held out, before", task_.describe(before_->record)});
  if (after_ && !best_.best()) {
    rows.push_back({"held out, after", task_.describe(after_->record)});
  }
  if (before_ && after_) {
    std::string change = task_.describe_change(before_->record, after_->record);
    if (!change.empty()) rows.push_back({"held out, change", std::move(change)});
  }
  return rows;
}

RunSummary Session::summary() const {
  return {.steps = engine_->completed_steps(),
          .samples = samples_,
          .finished = finished(),
          .before = before_,
          .after = after_,
          .best = best_.best()};
}

// The part of a checkpoint's client state that belongs to the data.
Json Session::state_of_source(int64_t samples) {
  Json state = source_->identity();
  state.update(source_->position(static_cast<uint64_t>(samples)));
  return state;
}

void Session::save_checkpoint() {
  Json state = {{"samples", samples_},
                {kFirstValues, first_values_},
                {kHeldOut, task_.facts().held_out_checksums}};
  state.update(state_of_source(samples_));
  if (best_.best()) state["best"] = to_json(*best_.best());
  state["recipe"] = recipe_;
  state[kVocabularyChecksum] = task_.description().vocabulary->checksum();
  engine_->with_common_values([&] {
    checkpoints_.wait_for_previous();  // before anything is copied for the new one
    std::function<void(const Path&)> write_model;
    if (checkpoints_.writes_model()) {
      write_model = model_writer(table_, task_.description(), card());
    }
    checkpoints_.save(*engine_, state, std::move(write_model));
  });
  if (keeps_last() && finished()) keep_last();
}

void Session::keep_last() {
  engine_->with_common_values([&] {
    if (leads_disk()) best_.write(table_, task_.description(), card());
  });
}

}  // namespace onebit::training
