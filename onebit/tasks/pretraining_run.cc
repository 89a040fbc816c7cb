#include "onebit/tasks/pretraining_run.h"

#include <algorithm>
#include <array>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/training/step_costs.h"

namespace onebit::tasks {
namespace {

data::BatchBounds largest(const data::BatchBounds& a, const data::BatchBounds& b) {
  return {.sequences = std::max(a.sequences, b.sequences),
          .rows = std::max(a.rows, b.rows),
          .masked_rows = std::max(a.masked_rows, b.masked_rows)};
}

std::string describe(const HeldOutResult& result) {
  return fmt::format("MLM loss {:.4f}, {:.2f} % of masked words right; NSP loss {:.4f}, {:.2f} %",
                     result.mlm_loss, 100 * result.mlm_accuracy, result.nsp_loss,
                     100 * result.nsp_accuracy);
}

}  // namespace

PretrainingRun::PretrainingRun(Context& context, const PretrainingOptions& options,
                               comm::Communicator& communicator)
    : context_(context),
      communicator_(communicator),
      recipe_(options.recipe),
      stores_(open_stores(options.data)),
      description_({.config = {},
                    .architecture = "BertForPreTraining",
                    .vocabulary = stores_.front().store->vocabulary(),
                    .casing = stores_.front().store->manifest().casing}),
      config_(parse_pretraining_recipe(options.recipe, options.recipe_place,
                                       description_.vocabulary->size())),
      checkpoints_(communicator, options.output, config_.engine.run.keep_last) {
  description_.config = config_.model;
  model_ = std::make_unique<model::PreTrainingModel>(config_.model, table_);
  table_.allocate(context.device(), config_.engine.compute);
  engine_ = std::make_unique<engine::Engine>(context, table_, config_.engine, communicator);
  std::optional<engine::SavedCheckpoint> saved;
  if (options.resume) saved = checkpoints_.open(options.tag);
  open_data(options, saved ? &*saved : nullptr);
  plan_memory();
  restore(options, saved ? &*saved : nullptr);
  start_prefetch();
}

void PretrainingRun::open_data(const PretrainingOptions& options,
                               const engine::SavedCheckpoint* saved) {
  const auto stream = stream_options(config_, engine_->batch(), communicator_, context_.threads());
  std::vector<data::EpochMark> marks;
  if (saved != nullptr) {
    training::read_client_state(options.output,
                                [&] { marks = marks_of(saved->client_state, stores_, stream); });
  }
  stream_ = std::make_unique<data::BatchStream>(stores_, stream, marks);
  data_rows_ = describe_stores(stores_);
  if (!options.valid) {
    if (config_.engine.run.evaluate_every > 0) {
      decisions_.push_back("no held-out losses (run.evaluate_every): --valid names no token store");
    }
    return;
  }
  data::EvaluationOptions held_out = held_out_options(communicator_, context_.threads());
  held_out.batch = config_.data.evaluation_batch;
  held_out.max_samples = config_.data.evaluation_samples;
  held_out.pairs = config_.data.pairs;
  held_out.masks = config_.data.masks;
  held_out_ = open_held_out(*options.valid, *description_.vocabulary, held_out);
  data_rows_.push_back({"held-out data", fmt::format("{}: {} sequences", options.valid->string(),
                                                     held_out_->samples())});
}

void PretrainingRun::plan_memory() {
  data::BatchBounds bounds = stream_->bounds();
  if (held_out_) bounds = largest(bounds, held_out_->bounds());
  buffer_.emplace(context_.device(), bounds);
  const model::MemoryPlan booked =
      model_->plan(context_, training::limits_of(bounds), config_.memory, true);
  memory_ = model::memory_report(table_, booked, config_.engine.compute);
  step_batches_.resize(static_cast<size_t>(engine_->batch().accumulation));
  for (auto& batch : step_batches_) batch.reserve(stream_->bounds());
}

void PretrainingRun::restore(const PretrainingOptions& options,
                             const engine::SavedCheckpoint* saved) {
  if (saved != nullptr) {
    training::read_client_state(options.output, [&] { resume(*saved, options); });
    return;
  }
  if (options.resume) decisions_.push_back("no checkpoint yet, starting from the beginning");
  table_.initialize(config_.engine.run.seed);
  initial_values_ = fmt::format("fresh, seed {}", config_.engine.run.seed);
  if (options.initialize_from) {
    const Path folder = training::find_model_folder(*options.initialize_from);
    training::require_same_shape(config_.model, training::read_model_description(folder).config,
                                 folder.string());
    training::load_values(table_, folder, {.may_lack = {"cls."}, .may_ignore = kNotForPretraining});
    initial_values_ = folder.string();
  }
  engine_->broadcast_values();
}

void PretrainingRun::resume(const engine::SavedCheckpoint& saved,
                            const PretrainingOptions& options) {
  for (auto& line : training::restore_run(saved, description_, recipe_, table_, *engine_,
                                          communicator_.world_size())) {
    decisions_.push_back(std::move(line));
  }
  samples_ = saved.client_state.at("samples").get<int64_t>();
  resumed_ = true;
  initial_values_ = fmt::format("the checkpoint {}", saved.model_folder.parent_path().string());
  if (saved.client_state.value("stores", Json()) != stores_to_json(stores_)) {
    decisions_.push_back(
        "not as it was: --data names other token stores or weights; sample numbers go on in them");
  }
  if (options.initialize_from) {
    decisions_.push_back("--initialize-from is for the first start: not used");
  }
}

void PretrainingRun::start_prefetch() {
  const int64_t accumulation = engine_->batch().accumulation;
  const auto first = static_cast<uint64_t>(samples_);
  const auto build = [this, accumulation, first](int64_t ticket, data::Batch& batch) {
    const uint64_t steps = static_cast<uint64_t>(ticket / accumulation);
    stream_->build(first + steps * stream_->samples_per_step(), ticket % accumulation, batch);
    return true;
  };
  prefetcher_ =
      std::make_unique<data::Prefetcher>(build, stream_->bounds(), data::PrefetchOptions{});
}

int64_t PretrainingRun::fetch_step() {
  const Stopwatch watch;
  int64_t masked = 0;
  for (auto& batch : step_batches_) {
    batch = *prefetcher_->next();
    masked += batch.masked();
  }
  data_seconds_ = watch.seconds();
  communicator_.all_reduce(std::span(&masked, 1), comm::Reduction::kSum);
  return masked;
}

training::StepRecord PretrainingRun::train_step() {
  const Stopwatch watch;
  const int64_t masked = fetch_step();
  const double world = communicator_.world_size();
  const model::PreTrainingModel::LossWeights weights = {
      .masked_lm = world / static_cast<double>(std::max<int64_t>(masked, 1)),
      .next_sentence = world / static_cast<double>(engine_->batch().train)};
  training::StepRecord record;
  model::PreTrainingModel::Result sums;
  double tokens = 0;
  for (const auto& batch : step_batches_) {
    tokens += static_cast<double>(batch.rows());
    engine_->backward([&](const engine::BackwardInput& input) {
      Stopwatch pass;
      const auto forward_done = [&] { record.forward_seconds += pass.restart(); };
      sums += model_->forward_backward(context_, buffer_->upload(context_, batch), weights,
                                       {.dropout_seed = config_.engine.run.seed,
                                        .loss_scale = input.loss_scale,
                                        .gradients_ready = input.gradients_ready,
                                        .forward_done = forward_done});
      // The host runs ahead of a GPU; where the step goes on it waits for it in any case.
      if (&batch == &step_batches_.back()) context_.synchronize();
      record.backward_seconds += pass.seconds();
    });
  }
  std::array<double, 5> totals = {sums.mlm_loss_sum, sums.nsp_loss_sum,
                                  static_cast<double>(sums.masked_correct),
                                  static_cast<double>(sums.nsp_correct), tokens};
  comm::Request totals_ready =
      communicator_.start_all_reduce(std::span<double>(totals), comm::Reduction::kSum);
  record.outcome = engine_->step().value();
  totals_ready.wait();
  samples_ += engine_->batch().train;
  const double all_samples = static_cast<double>(engine_->batch().train);
  record.samples = samples_;
  record.step_samples = engine_->batch().train;
  record.step_tokens = static_cast<int64_t>(totals[4]);
  const double all_masked = static_cast<double>(std::max<int64_t>(masked, 1));
  record.loss = totals[0] / all_masked + totals[1] / all_samples;
  record.metrics = {{"mlm_loss", totals[0] / all_masked, false, "mlm"},
                    {"nsp_loss", totals[1] / all_samples, false, "nsp"},
                    {"mlm_accuracy", totals[2] / all_masked},
                    {"nsp_accuracy", totals[3] / all_samples}};
  record.data_seconds = data_seconds_;
  record.seconds = watch.seconds();
  return record;
}

std::function<training::PassTimes()> PretrainingRun::measured_pass() {
  auto batch = std::make_shared<data::Batch>();
  batch->reserve(stream_->bounds());
  stream_->build(static_cast<uint64_t>(samples_), 0, *batch);
  return [this, batch] {
    return training::time_pass(
        context_, config_.engine.run.seed, [&](const model::TrainingPass& pass) {
          model_->forward_backward(context_, buffer_->upload(context_, *batch),
                                   {.masked_lm = 1.0 / static_cast<double>(batch->masked()),
                                    .next_sentence = 1.0 / static_cast<double>(batch->sequences())},
                                   pass);
        });
  };
}

std::optional<HeldOutResult> PretrainingRun::evaluate() {
  if (!held_out_) return std::nullopt;
  return evaluate_held_out(context_, *model_, *held_out_, *buffer_, communicator_);
}

bool PretrainingRun::evaluation_is_due(const training::StepRecord& record) const {
  const engine::RunConfig& run = config_.engine.run;
  const int64_t step = record.outcome.step;
  return held_out_ && record.outcome.applied && run.evaluate_every > 0 &&
         step % run.evaluate_every == 0 && step < run.steps;
}

void PretrainingRun::evaluate_into(training::TrainingLog& log) {
  if (const auto result = evaluate())
    log.evaluated(engine_->completed_steps(), samples_, to_evaluation(*result));
}

void PretrainingRun::before_training(training::TrainingLog& log) {
  if (resumed_) return;
  before_ = evaluate();
  if (before_) log.evaluated(0, 0, to_evaluation(*before_));
}

void PretrainingRun::after_training(training::TrainingLog& log) {
  if (!finished()) return;
  after_ = evaluate();
  const bool anything_new = log.totals().steps > 0;  // else the log has it already
  if (after_ && anything_new)
    log.evaluated(engine_->completed_steps(), samples_, to_evaluation(*after_));
}

training::Rows PretrainingRun::results() const {
  training::Rows rows;
  if (before_) rows.push_back({"held out, before", describe(*before_)});
  if (after_) rows.push_back({"held out, after", describe(*after_)});
  return rows;
}

training::StartFacts PretrainingRun::facts() {
  return {.model = config_.model,
          .memory = memory_,
          .table = table_,
          .sequences = fmt::format("sequences of {}", config_.data.pairs.sequence_length),
          .data = data_rows_,
          .initial_values = initial_values_,
          .decisions = decisions_,
          .pass = measured_pass()};
}

void PretrainingRun::save_checkpoint() {
  training::save_run(checkpoints_, *engine_, table_, description_, recipe_,
                     {{"samples", samples_},
                      {"stores", stores_to_json(stores_)},
                      {"epochs", marks_to_json(stream_->marks(static_cast<uint64_t>(samples_)),
                                               stores_, stream_->options())}});
}

}  // namespace onebit::tasks
