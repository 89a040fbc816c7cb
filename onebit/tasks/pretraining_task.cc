#include "onebit/tasks/pretraining_task.h"

#include "onebit/tasks/pretraining_batch.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {
namespace {

class PretrainingSource : public training::BatchSource {
 public:
  PretrainingSource(const Stores& stores, const data::BatchStreamOptions& options,
                    const std::vector<data::EpochMark>& marks)
      : stores_(stores), stream_(stores, options, marks) {}

  std::unique_ptr<training::HostBatch> make_batch() const override {
    auto batch = std::make_unique<PretrainingBatch>();
    batch->batch.reserve(stream_.bounds());
    return batch;
  }
  void build(uint64_t first_sample, int64_t micro_step, training::HostBatch& batch) override {
    stream_.build(first_sample, micro_step, static_cast<PretrainingBatch&>(batch).batch);
  }
  data::BatchBounds bounds() const override { return stream_.bounds(); }
  Json position(uint64_t samples) override {
    return {{"stores", stores_to_json(stores_)},
            {"epochs", marks_to_json(stream_.marks(samples), stores_, stream_.options())}};
  }

 private:
  const Stores& stores_;
  data::BatchStream stream_;
};

}  // namespace

PretrainingTask::PretrainingTask(const PretrainingOptions& options,
                                 comm::Communicator& communicator)
    : options_(options),
      communicator_(communicator),
      stores_(open_stores(options.data)),
      description_({.config = {},
                    .architecture = "BertForPreTraining",
                    .vocabulary = stores_.front().store->vocabulary(),
                    .casing = stores_.front().store->manifest().casing}),
      config_(parse_pretraining_recipe(options.recipe, options.recipe_place,
                                       description_.vocabulary->size())),
      data_rows_(describe_stores(stores_)) {
  description_.config = config_.model;
}

void PretrainingTask::declare(params::Table& table) {
  model_ = std::make_unique<model::PreTrainingModel>(config_.model, table);
}

std::unique_ptr<training::BatchSource> PretrainingTask::open(const training::StreamShare& share,
                                                             const Json* saved) {
  const data::BatchStreamOptions stream = stream_options(config_, share);
  std::vector<data::EpochMark> marks;
  if (saved != nullptr) marks = marks_of(*saved, stores_, stream);
  auto source = std::make_unique<PretrainingSource>(stores_, stream, marks);
  if (options_.valid) {
    open_held_out_data(share.threads);
  } else if (config_.engine.run.evaluate_every > 0) {
    decisions_.emplace_back(
        "no held-out losses (run.evaluate_every): --valid names no token store");
  }
  return source;
}

void PretrainingTask::open_held_out_data(int threads) {
  data::EvaluationOptions options = held_out_options(communicator_, threads);
  options.batch = config_.data.evaluation_batch;
  options.max_samples = config_.data.evaluation_samples;
  options.pairs = config_.data.pairs;
  options.masks = config_.data.masks;
  held_out_ = open_held_out(*options_.valid, *description_.vocabulary, options);
  data_rows_.push_back({"held-out data", fmt::format("{}: {} sequences", options_.valid->string(),
                                                     held_out_->samples())});
}

data::BatchBounds PretrainingTask::evaluation_bounds() const {
  return held_out_ ? held_out_->bounds() : data::BatchBounds{};
}

model::MemoryPlan PretrainingTask::plan(Context& context, const model::BatchLimits& limits) {
  return model_->plan(context, limits, config_.memory, true);
}

std::string PretrainingTask::fill(params::Table& table) {
  table.initialize(config_.engine.run.seed);
  if (!options_.initialize_from) return fmt::format("fresh, seed {}", config_.engine.run.seed);
  const Path folder = training::find_model_folder(*options_.initialize_from);
  training::require_same_shape(config_.model, training::read_model_description(folder).config,
                               folder.string());
  training::load_values(table, folder, {.may_lack = {"cls."}, .may_ignore = kNotForPretraining});
  return folder.string();
}

std::vector<std::string> PretrainingTask::resume(const Json& client_state,
                                                 const std::string& /*place*/) {
  std::vector<std::string> lines;
  if (client_state.value("stores", Json()) != stores_to_json(stores_)) {
    lines.emplace_back(
        "changed: --data names other token stores or weights; sample numbers continue in them");
  }
  if (options_.initialize_from) {
    lines.emplace_back("--initialize-from is for the first start: not used");
  }
  return lines;
}

training::Sums PretrainingTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                                 const training::StepItems& items,
                                                 const model::TrainingPass& pass) {
  const model::PreTrainingModel::Result sums = model_->forward_backward(
      context, batch,
      {.masked_lm = items.weight(items.items), .next_sentence = items.weight(items.samples)}, pass);
  return {sums.mlm_loss_sum, sums.nsp_loss_sum, static_cast<double>(sums.masked_correct),
          static_cast<double>(sums.nsp_correct)};
}

training::StepMetrics PretrainingTask::metrics(const training::StepSums& step) const {
  const auto masked = static_cast<double>(step.items.items);
  const auto samples = static_cast<double>(step.items.samples);
  const double mlm_loss = step.sums[0] / masked, nsp_loss = step.sums[1] / samples;
  return {.loss = mlm_loss + nsp_loss,
          .metrics = {{"mlm_loss", mlm_loss, false, "mlm"},
                      {"nsp_loss", nsp_loss, false, "nsp"},
                      {"mlm_accuracy", step.sums[2] / masked},
                      {"nsp_accuracy", step.sums[3] / samples}}};
}

training::EvaluationTimes PretrainingTask::evaluation_times() const {
  return {.first_values = held_out_ != nullptr, .by_steps = held_out_ != nullptr};
}

training::Evaluation PretrainingTask::evaluate(Context& context,
                                               training::DeviceBatchBuffer& buffer,
                                               comm::Communicator& communicator) {
  return to_evaluation(evaluate_held_out(context, *model_, *held_out_, buffer, communicator));
}

std::string PretrainingTask::describe(const std::vector<metrics::Metric>& record) const {
  const auto value = [&](const char* name) { return metrics::value_of(record, name); };
  return fmt::format("MLM loss {:.4f}, {:.2f} % of masked words right; NSP loss {:.4f}, {:.2f} %",
                     value("mlm_loss"), 100 * value("mlm_accuracy"), value("nsp_loss"),
                     100 * value("nsp_accuracy"));
}

std::string PretrainingTask::sequences() const {
  return fmt::format("sequences of {}", config_.data.pairs.sequence_length);
}

training::RunSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                     comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  PretrainingTask task(options, communicator);
  return training::run_training(context, task, options, communicator);
}

}  // namespace onebit::tasks
