#include "onebit/apps/pretrain/pretraining_task.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "onebit/apps/pretrain/epoch_check.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/training_loop.h"

namespace onebit::pretrain {
namespace {

class PretrainingSource : public training::BatchSource {
 public:
  PretrainingSource(const Stores& stores, const batches::BatchStreamOptions& options,
                    const std::vector<batches::EpochMark>& marks)
      : stores_(stores), stream_(stores, options, marks) {}

  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) override {
    stream_.build(first_sample, micro_step, batch);
  }
  batches::BatchBounds bounds() const override { return stream_.bounds(); }
  std::vector<batches::EpochFigures> figures() { return stream_.figures(); }
  Json identity() const override { return {{"stores", stores_to_json(stores_)}}; }
  // The start of the next epoch, so that finding it again takes no pass over the data.
  Json position(uint64_t samples) override {
    return {{"epochs", marks_to_json(stream_.marks(samples), stores_, stream_.options())}};
  }

 private:
  const Stores& stores_;
  batches::BatchStream stream_;
};

void check_held_out_names(const std::vector<HeldOutData>& stores) {
  std::set<std::string> names;
  for (const HeldOutData& store : stores) {
    const bool plain = std::all_of(store.name.begin(), store.name.end(), [](unsigned char letter) {
      return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
    });
    require(
        plain && !is_held_out_figure(store.name),
        "held-out data {}: \"{}\" cannot be its name: a name consists of letters, digits, - and _ "
        "and is not that of a metric: give --valid NAME={}",
        store.folder.string(), store.name, store.folder.string());
    require(names.insert(store.name).second,
            "held-out data {}: another store is called \"{}\" already: give --valid NAME={}",
            store.folder.string(), store.name, store.folder.string());
  }
}

// How the share of masked words changes; nothing where it does not.
std::optional<std::string> describe_masks(const batches::MaskOptions& masks) {
  std::string text = fmt::format("{:g} % of the tokens", 100 * masks.probability);
  if (masks.final_probability) {
    text += fmt::format(", and {:g} % at the end of the run", 100 * *masks.final_probability);
  }
  for (const auto& [step, share] : masks.probability_since) {
    text += fmt::format(", {:g} % from step {} on", 100 * share, step);
  }
  if (!masks.final_probability && masks.probability_since.empty()) return std::nullopt;
  return text;
}

// A format of the run's folder.
std::string use_of(const std::string& mask) {
  if (mask.find_first_of("{}\"") != std::string::npos) return "onebit fill {} TEXT";
  return fmt::format("onebit fill {{}} \"Some text with a {} .\"", mask);
}

}  // namespace

PretrainingTask::PretrainingTask(const PretrainingOptions& options,
                                 const training::Connection& connection)
    : options_(options),
      stores_(open_stores(options.data)),
      start_(find_start(options)),
      config_(read_recipe()),
      communicator_(connection.open(config_.engine.transport)),
      description_(describe_model()) {
  facts_.name = kPretrainingTask;
  facts_.use = use_of(description_.vocabulary->names().mask);
  facts_.counts_items = true;  // masked words
  facts_.drawn = {.name = "mlm_loss", .title = "MLM loss"};
  facts_.data_rows = describe_stores(stores_);
  const batches::PairOptions& pairs = config_.data.pairs;
  facts_.sequences =
      pairs.packing ? fmt::format("samples of {} tokens of packed sequences", pairs.sequence_length)
                    : fmt::format("sequences of {}{}", pairs.sequence_length,
                                  pairs.next_sentence ? "" : " (masked words only)");
  if (const auto row = describe_masks(config_.data.masks)) {
    facts_.data_rows.emplace_back("masked words", *row);
  }
  check_held_out_names(options_.valid);
  for (const batches::WeightedStore& each : stores_) {
    require_segments(*each.store, config_.model.segments);
  }
  if (!start_) return;
  for (const batches::WeightedStore& each : stores_) {
    finetune::require_vocabulary_of(vocabulary_owner(), *each.store);
  }
}

// A resumed run uses its own model, even if the one that it started from has changed since.
std::optional<PretrainingTask::Start> PretrainingTask::find_start(
    const PretrainingOptions& options) {
  const auto read = [](const Path& folder, bool resumed) {
    return Start{folder, resumed, training::read_model_description(folder)};
  };
  if (options.resume) {
    auto own = training::read_model_of_run(options.output, options.tag, [&](const Path& folder) {
      formats::require_unchanged(folder);
      return read(folder, true);
    });
    if (own) return own;
  }
  if (!options.initialize_from) return std::nullopt;
  return read(training::find_model_folder(*options.initialize_from), false);
}

PretrainingConfig PretrainingTask::read_recipe() const {
  require_own_run();
  std::optional<model::StartingModel> model;
  if (start_) model = {start_->description.config, start_->folder.string()};
  PretrainingConfig config = parse_pretraining_recipe(
      options_.recipe, stores_.front().store->vocabulary()->size(), model ? &*model : nullptr);
  const char* wanted = architecture_of(config.data.heads());
  require(
      !start_ || !start_->resumed || start_->description.architecture == wanted,
      "{}: key `data.next_sentence` makes the model a {}, the run's, {}, is a {}: keep the value "
      "that the run was started with",
      options_.recipe.place, wanted, start_ ? start_->folder.string() : "",
      start_ ? start_->description.architecture : "");
  return config;
}

// Error: the run that is resumed is of another task.
void PretrainingTask::require_own_run() const {
  if (!start_ || !start_->resumed) return;
  const std::string& found = start_->description.architecture;
  require(found == model::kPretrainingArchitecture || found == model::kMaskedWordArchitecture,
          "{}: the run's model is a {}, so it is of another task than {}: resume it with its own "
          "command, or give another --output",
          start_->folder.string(), found, kPretrainingTask);
}

training::ModelDescription PretrainingTask::describe_model() const {
  const corpus::Store& store = *stores_.front().store;
  return {.config = config_.model,
          .architecture = architecture_of(config_.data.heads()),
          .vocabulary = start_ ? start_->description.vocabulary : store.vocabulary(),
          .casing = start_ ? start_->description.casing : store.casing()};
}

finetune::VocabularyOwner PretrainingTask::vocabulary_owner() const {
  return {.what = start_ ? "the model" : "the training data",
          .path = start_ ? start_->folder : stores_.front().store->folder(),
          .vocabulary = description_.vocabulary,
          .casing = description_.casing};
}

void PretrainingTask::declare(ParameterTable& table) {
  model_ = std::make_unique<model::PreTrainingModel>(config_.model, table, config_.data.heads());
  if (config_.layer_drop.enabled) layer_factors_.resize(static_cast<size_t>(config_.model.layers));
}

std::unique_ptr<training::BatchSource> PretrainingTask::open(const training::StreamShare& share,
                                                             const Json* saved) {
  const batches::BatchStreamOptions stream = stream_options(config_, share);
  std::vector<batches::EpochMark> marks;
  if (saved != nullptr) {
    marks = marks_of(*saved, stores_, stream);
    report_changes(*saved);
  }
  auto source = std::make_unique<PretrainingSource>(stores_, stream, marks);
  check_epoch(source->figures(), saved);
  if (!options_.valid.empty()) {
    open_held_out_data(share.threads);
  } else if (config_.session.evaluate_every > 0) {
    facts_.decisions.emplace_back("no held-out losses (run.evaluate_every): no --valid given");
  }
  return source;
}

// A run that is resumed was checked when it was started.
void PretrainingTask::check_epoch(const std::vector<batches::EpochFigures>& figures,
                                  const Json* saved) {
  const batches::PairOptions& pairs = config_.data.pairs;
  if (!start_ || !start_->resumed) require_useful_labels(stores_, figures, pairs);
  for (const std::string& warning : warnings_of_training(stores_, figures, pairs)) {
    log_warning("{}", warning);
  }
  facts_.data_rows.emplace_back("epoch", describe_epoch(figures));
  const bool has_pieces =
      std::any_of(figures.begin(), figures.end(),
                  [](const batches::EpochFigures& each) { return each.cut_tokens > 0; });
  if (has_pieces && saved != nullptr && !cuts_long_sentences(*saved)) {
    facts_.decisions.emplace_back(
        "changed: sentences longer than a sequence are read in pieces, which the version that "
        "saved "
        "the run truncated; sample numbers continue in the new samples");
  }
}

void PretrainingTask::report_changes(const Json& saved) {
  if (!are_those_of(saved, stores_)) {
    facts_.decisions.emplace_back(
        "changed: --data contains other token stores or weights; sample numbers continue in them");
  }
  if (options_.initialize_from) {
    facts_.decisions.emplace_back("--initialize-from applies only to the first start: not used");
  }
}

void PretrainingTask::open_held_out_data(int threads) {
  batches::EvaluationOptions options = held_out_options(communicator_, threads);
  options.batch = config_.data.evaluation_batch;
  options.max_samples = config_.data.evaluation_samples;
  options.pairs = config_.data.pairs;
  options.masks = config_.data.masks;
  std::vector<batches::BatchBounds> bounds;
  for (const HeldOutData& given : options_.valid) {
    const auto store = batches::open_store(given.folder);
    held_out_.push_back({given.name, open_held_out(store, vocabulary_owner(), options)});
    warn_of_held_out(*store, *held_out_.back().stream, options.pairs);
    facts_.held_out_checksums.push_back(checksum_of(*store));
    facts_.data_rows.push_back(
        {"held-out data", fmt::format("{}{}: {} {}", given.name.empty() ? "" : given.name + ", ",
                                      given.folder.string(), held_out_.back().stream->samples(),
                                      options.pairs.packing ? "samples" : "sequences")});
    bounds.push_back(held_out_.back().stream->bounds());
  }
  facts_.evaluations = {.first_values = true, .by_steps = true};
  // The streams have the same options, but the stores have samples of different sizes.
  facts_.evaluation_bounds = batches::bounds_of(1, bounds);
}

model::MemoryPlan PretrainingTask::plan(Context& context, const model::BatchLimits& limits) {
  return model_->plan(context, limits, config_.memory, true);
}

std::string PretrainingTask::fill(ParameterTable& table) {
  table.initialize(config_.engine.run.seed);
  if (!start_) {
    if (!options_.recipe.values.contains("model")) {
      log_warning(
          "{}: has no section `model`, and no --initialize-from is given: a new bert-base with "
          "random values is trained; pass --initialize-from MODEL to continue a model",
          options_.recipe.place);
    }
    return fmt::format("random, seed {}", config_.engine.run.seed);
  }
  const std::vector<std::string> lacking =
      training::load_values(table, start_->folder, fresh_where_lacking(config_.data.heads()))
          .lacking;
  if (std::find(lacking.begin(), lacking.end(), kTokenTypes) != lacking.end()) {
    const ParameterEntry& entry = table.entry(kTokenTypes);
    const std::vector<float> zeros(static_cast<size_t>(entry.shape.elements()));
    copy(table.value_of(entry), ConstView::of(zeros.data(), entry.shape));
  }
  if (lacking.empty()) return start_->folder.string();
  return fmt::format("{}; missing and initialized with seed {}: {}", start_->folder.string(),
                     config_.engine.run.seed, parts_of(lacking));
}

training::Sums PretrainingTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                                 const training::StepItems& items,
                                                 const model::TrainingPass& pass) {
  const model::PreTrainingModel::LossWeights weights = {
      .masked_lm = items.weight(items.items), .next_sentence = items.weight(items.samples)};
  const auto run = [&](const model::TrainingPass& with) {
    const model::PreTrainingModel::Result sums =
        model_->forward_backward(context, batch, weights, with);
    return training::Sums{sums.mlm_loss_sum, sums.nsp_loss_sum,
                          static_cast<double>(sums.masked_correct),
                          static_cast<double>(sums.nsp_correct)};
  };
  if (layer_factors_.empty()) return run(pass);
  const model::LayerDrop drop = config_.drop();
  drop.draw(config_.engine.run.seed, pass.step, pass.micro_step, layer_factors_);
  model::TrainingPass shortened = pass;
  shortened.layer_factors = layer_factors_;
  training::Sums sums = run(shortened);
  const auto left_out = std::count(layer_factors_.begin(), layer_factors_.end(), 0.0f);
  sums.push_back(1);  // pass
  sums.push_back(static_cast<double>(config_.model.layers - left_out));
  sums.push_back(drop.theta(pass.step));
  return sums;
}

training::StepMetrics PretrainingTask::metrics(const training::StepSums& step) const {
  const auto masked = static_cast<double>(step.items.items);
  const auto samples = static_cast<double>(step.items.samples);
  const double mlm_loss = step.sums[0] / masked, nsp_loss = step.sums[1] / samples;
  training::StepMetrics shown{.loss = mlm_loss, .metrics = {{"mlm_loss", mlm_loss, false, "mlm"}}};
  if (config_.data.pairs.next_sentence) {
    shown.loss += nsp_loss;
    shown.metrics.push_back({"nsp_loss", nsp_loss, false, "nsp"});
  }
  shown.metrics.push_back({"mlm_accuracy", step.sums[2] / masked});
  if (config_.data.pairs.next_sentence) {
    shown.metrics.push_back({"nsp_accuracy", step.sums[3] / samples});
  }
  if (!layer_factors_.empty()) {
    const double passes = step.sums[4];
    shown.metrics.push_back({"layers", step.sums[5] / passes, false, "layers"});
    shown.metrics.push_back({"layer_drop_theta", step.sums[6] / passes});
  }
  return shown;
}

training::ComputedLayers PretrainingTask::computed_layers(int64_t from, int64_t to) const {
  if (!config_.layer_drop.enabled || to <= from) return {};
  const model::LayerDrop drop = config_.drop();
  const auto layers = static_cast<double>(config_.model.layers);
  const double computed = drop.mean_layers(from, to);
  return {.share = computed / layers,
          .text = fmt::format("theta from {:.3g} to {:.3g}: a pass computes {:.2f} of {} layers on "
                              "average over {} steps, {:.0f} % of the encoder",
                              drop.theta(from), drop.theta(to), computed, config_.model.layers,
                              to - from, 100 * computed / layers)};
}

training::Evaluation PretrainingTask::evaluate(Context& context,
                                               training::DeviceBatchBuffer& buffer,
                                               comm::Communicator& communicator) {
  std::vector<NamedResult> results;
  for (const HeldOut& each : held_out_) {
    results.push_back(
        {each.name, evaluate_held_out(context, *model_, *each.stream, buffer, communicator)});
  }
  return to_evaluation(results);
}

std::string PretrainingTask::describe(const std::vector<metrics::Metric>& record) const {
  return describe_held_out(record, first_name());
}

std::string PretrainingTask::describe_change(const std::vector<metrics::Metric>& before,
                                             const std::vector<metrics::Metric>& after) const {
  return pretrain::describe_change(before, after, first_name());
}

std::unique_ptr<training::Task> make_pretraining_task(Context& /*context*/,
                                                      const training::RunOptions& run,
                                                      const training::TaskInputs& inputs,
                                                      const training::Connection& connection) {
  PretrainingOptions options{run, inputs.train, {}, {}};
  for (const training::NamedInput& store : inputs.dev) {
    options.valid.push_back({store.name, store.path});
  }
  if (!inputs.model.empty()) options.initialize_from = inputs.model;
  return std::make_unique<PretrainingTask>(options, connection);
}

}  // namespace onebit::pretrain
