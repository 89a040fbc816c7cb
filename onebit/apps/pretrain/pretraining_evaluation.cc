#include "onebit/apps/pretrain/pretraining_evaluation.h"

#include <algorithm>
#include <array>

#include "onebit/apps/pretrain/epoch_check.h"
#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::pretrain {

namespace {

constexpr char kUnder = '/';  // between the names of a store and a figure

using Metrics = std::vector<metrics::Metric>;

Metrics figures_of(const HeldOutResult& result) {
  Metrics figures = {{"loss", result.loss()},
                     {"mlm_loss", result.mlm_loss},
                     {"mlm_accuracy", result.mlm_accuracy}};
  if (result.next_sentence) {
    figures.push_back({"nsp_loss", result.nsp_loss});
    figures.push_back({"nsp_accuracy", result.nsp_accuracy});
  }
  figures.push_back({"samples", static_cast<double>(result.samples), true});
  return figures;
}

bool has(const Metrics& figures, std::string_view name) {
  return std::any_of(figures.begin(), figures.end(),
                     [&](const metrics::Metric& metric) { return metric.name == name; });
}

// Names and figures of the stores, in the order of the record.
std::vector<std::pair<std::string, Metrics>> stores_in(const Metrics& record,
                                                       const std::string& first_name) {
  std::vector<std::pair<std::string, Metrics>> stores;
  std::string last;
  for (metrics::Metric metric : record) {
    const size_t under = metric.name.find(kUnder);
    const std::string store =
        under == std::string::npos ? std::string() : metric.name.substr(0, under);
    if (stores.empty() || store != last) stores.push_back({store, {}});
    last = store;
    if (under != std::string::npos) metric.name.erase(0, under + 1);
    stores.back().second.push_back(std::move(metric));
  }
  if (!stores.empty() && stores.front().first.empty()) stores.front().first = first_name;
  return stores;
}

std::string words_of(const std::string& name, const Metrics& figures) {
  const auto value = [&](const char* figure) { return metrics::value_of(figures, figure); };
  std::string text = name.empty() ? "" : name + ": ";
  text += fmt::format("MLM loss {:.4f}, {:.2f} % of masked words right", value("mlm_loss"),
                      100 * value("mlm_accuracy"));
  if (has(figures, "nsp_loss")) {
    text +=
        fmt::format("; NSP loss {:.4f}, {:.2f} %", value("nsp_loss"), 100 * value("nsp_accuracy"));
  }
  return text;
}

}  // namespace

HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                batches::EvaluationStream& stream,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) {
  const Stopwatch watch;
  model::PreTrainingModel::Result sums;
  int64_t samples = 0;
  batches::Batch batch;
  batch.reserve(stream.bounds());
  for (int64_t index = 0; index < stream.batches(); ++index) {
    stream.build(index, batch);
    samples += batch.sample_count();
    sums += model.evaluate(context, buffer.upload(context, batch));
  }
  std::array<double, 7> totals = {sums.mlm_loss_sum,
                                  static_cast<double>(sums.masked_correct),
                                  static_cast<double>(sums.masked),
                                  sums.nsp_loss_sum,
                                  static_cast<double>(sums.nsp_correct),
                                  static_cast<double>(sums.sequences),
                                  static_cast<double>(samples)};
  communicator.all_reduce(std::span<double>(totals), comm::Reduction::kSum);
  require(totals[2] > 0,
          "the held-out data have no masked word to evaluate: prepare more text for --valid");
  const double pairs = std::max(totals[5], 1.0);
  return {.mlm_loss = totals[0] / totals[2],
          .mlm_accuracy = totals[1] / totals[2],
          .next_sentence = totals[5] > 0,
          .nsp_loss = totals[3] / pairs,
          .nsp_accuracy = totals[4] / pairs,
          .samples = static_cast<int64_t>(totals[6]),
          .masked = static_cast<int64_t>(totals[2]),
          .seconds = watch.seconds()};
}

training::Evaluation to_evaluation(const std::vector<NamedResult>& results) {
  ONEBIT_INVARIANT(!results.empty());
  training::Evaluation evaluation = {.key = "held_out", .metrics = {}, .line = "", .record = {}};
  for (const NamedResult& each : results) {
    const bool first = &each == &results.front();
    for (metrics::Metric& metric : figures_of(each.result)) {
      if (!first) metric.name.insert(0, each.name + kUnder);
      evaluation.metrics.push_back(std::move(metric));
    }
  }
  evaluation.line = "held-out " + describe_held_out(evaluation.metrics, results.front().name);
  evaluation.record = evaluation.metrics;
  return evaluation;
}

std::string describe_held_out(const std::vector<metrics::Metric>& record,
                              const std::string& first_name) {
  std::string text;
  for (const auto& [name, figures] : stores_in(record, first_name)) {
    text += (text.empty() ? "" : "; ") + words_of(name, figures);
  }
  return text;
}

std::string describe_change(const std::vector<metrics::Metric>& before,
                            const std::vector<metrics::Metric>& after,
                            const std::string& first_name) {
  std::string text = "MLM loss ";
  const auto was = stores_in(before, first_name), is = stores_in(after, first_name);
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    const double change =
        metrics::value_of(is[i].second, "mlm_loss") - metrics::value_of(was[i].second, "mlm_loss");
    text += fmt::format("{}{}{:+.4f}", i > 0 ? "; " : "",
                        is[i].first.empty() ? "" : is[i].first + ": ", change);
  }
  return text;
}

bool is_held_out_figure(const std::string& name) {
  return has(figures_of({.next_sentence = true}), name);
}

namespace {

// The section `data` of the recipe of the checkpoint that contains the model, with the overrides.
PretrainingData data_of(const PretrainingEvaluationOptions& task, const Path& model_folder,
                        const FoundHeads& heads, const model::EncoderConfig& shape) {
  const Path checkpoint = model_folder.parent_path();
  const bool is_in_run = std::filesystem::exists(checkpoint / run_files::kState);
  Recipe recipe =
      finetune::recipe_of_model(is_in_run ? checkpoint : model_folder, kPretrainingTask, {});
  Json& data = recipe.values["data"];
  if (data.is_null()) data = Json::object();
  const auto set_default = [&data](const char* key, const Json& value) {
    if (data.is_object() && !data.contains(key)) data[key] = value;
  };
  set_default("sequence_length",
              std::min(batches::PairOptions().sequence_length, shape.max_positions));
  set_default("next_sentence", heads.next_sentence);
  if (data.is_object()) data["evaluation_samples"] = 0;
  apply_overrides(recipe, task.overrides);
  const model::StartingModel start = {shape, model_folder.string()};
  return parse_pretraining_recipe(recipe, std::nullopt, &start).data;
}

}  // namespace

HeldOutResult evaluate_model(Context& context, const PretrainingEvaluationOptions& task,
                             comm::Communicator& communicator) {
  const Path folder = training::find_model_folder(task.model);
  const training::ModelDescription description = training::read_model_description(folder);
  const FoundHeads heads = require_masked_words(folder);
  const PretrainingData data = data_of(task, folder, heads, description.config);
  require(heads.next_sentence || !data.pairs.next_sentence,
          "{}: has no next-sentence head (cls.seq_relationship and bert.pooler): evaluate only "
          "masked words (set data.next_sentence to false)",
          folder.string());
  ParameterTable table;
  model::PreTrainingModel model(description.config, table, data.heads());
  const ConstantWeights weights =
      training::load_for_inference(context, table, task.compute, folder, all_present(data.heads()));
  batches::EvaluationOptions options = held_out_options(communicator, context.threads());
  options.batch = data.evaluation_batch;
  options.max_samples = data.evaluation_samples;
  options.pairs = data.pairs;
  options.masks = data.masks;
  const auto store = batches::open_store(task.data);
  const auto stream = open_held_out(store,
                                    {.what = "the model",
                                     .path = folder,
                                     .vocabulary = description.vocabulary,
                                     .casing = description.casing},
                                    options);
  warn_of_held_out(*store, *stream, options.pairs);
  training::DeviceBatchBuffer buffer(context.device(), stream->bounds(),
                                     description.uncounted_token());
  model.plan(context, training::limits_of(stream->bounds()), {}, false);
  return evaluate_held_out(context, model, *stream, buffer, communicator);
}

}  // namespace onebit::pretrain
