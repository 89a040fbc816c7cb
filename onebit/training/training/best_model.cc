#include "onebit/training/training/best_model.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/metric.h"

namespace onebit::training {

std::optional<KeptBy> find_kept_by(std::span<const metrics::MetricName> names,
                                   const std::string& wanted) {
  for (const metrics::MetricName& metric : names) {
    if (!wanted.empty() && wanted != metric.name) continue;
    return KeptBy{.metric = metric.name, .smaller_is_better = metric.smaller_is_better};
  }
  return std::nullopt;
}

Json to_json(const KeptModel& kept) {
  Json json = {{"step", kept.step}};
  for (const metrics::Metric& metric : kept.record) {
    json[metric.name] = metrics::value_in_json(metric);
  }
  return json;
}

KeptModel kept_model_from(JsonReader json) {
  KeptModel kept{.step = json.integer("step", 0), .record = {}};
  for (const auto& [name, value] : json.given().items()) {
    if (name == "step") continue;
    kept.record.push_back(
        {.name = name,
         .value = json.number(name, std::numeric_limits<double>::quiet_NaN()),  // written as null
         .is_count = metrics::is_count(value)});
  }
  return kept;
}

namespace {

using Record = std::vector<metrics::Metric>;

bool is_better_than(const Record& record, const Record& other, const KeptBy& kept_by) {
  const double so_far = metrics::value_of(other, kept_by.metric);
  const double now = metrics::value_of(record, kept_by.metric);
  if (std::isnan(now)) return false;
  return std::isnan(so_far) || (kept_by.smaller_is_better ? now < so_far : now > so_far);
}

}  // namespace

bool BestModel::is_better(const std::vector<metrics::Metric>& record) const {
  if (!best_) return !std::isnan(metrics::value_of(record, kept_by_.metric));
  return is_better_than(record, best_->record, kept_by_);
}

bool BestModel::is_better(const Json& evaluation, const Json& than) const {
  const auto record_of = [](const Json& json) {
    return kept_model_from(JsonReader(json, run_files::kEvaluation, "")).record;
  };
  return is_better_than(record_of(evaluation), record_of(than), kept_by_);
}

std::optional<std::string> BestModel::resume(const Json& client_state, int64_t step) {
  best_.reset();
  if (client_state.contains("best")) {
    best_ = kept_model_from(JsonReader(client_state, run_files::kState, "").object("best"));
  }
  const Path path = output_ / run_files::kEvaluation;
  if (!std::filesystem::exists(path)) {
    if (!best_) return std::nullopt;
    best_.reset();
    return "the folder contains no complete best model (evaluation.json is missing: its "
           "replacement was interrupted), so the next evaluation counts as the best";
  }
  KeptModel kept = kept_model_from(JsonReader(read_json(path), path.string(), ""));
  if (best_ && kept.step == best_->step) return std::nullopt;
  // A stop may come between an evaluation and the checkpoint of its step.
  if (kept.step == step) {
    best_ = std::move(kept);
    return std::nullopt;
  }
  best_.reset();
  return fmt::format(
      "the best model in the folder is of step {}, which {}, so the next evaluation counts as the "
      "best",
      kept.step,
      kept.step > step ? fmt::format("comes after this checkpoint (step {})", step)
                       : "was not the best when this checkpoint was made");
}

void BestModel::write(const ParameterTable& table, const ModelDescription& description,
                      const ModelCard& card) const {
  const Path beside = output_ / run_files::kNextModel;
  std::filesystem::remove_all(beside);
  make_folder(beside);
  ValueSnapshot(table).write(beside, description);
  write_model_card(beside, card, description);
  const std::filesystem::directory_iterator files(beside);
  const std::vector<std::filesystem::directory_entry> written(begin(files), end(files));
  std::filesystem::remove(output_ / run_files::kEvaluation);
  for (const auto& file : written) {
    const Path to = output_ / file.path().filename();
    file.is_directory() ? replace_folder(file.path(), to) : rename_durably(file.path(), to);
  }
  std::filesystem::remove(beside);
  if (best_)
    write_file_atomically(output_ / run_files::kEvaluation, json_text(to_json(*best_), 2) + "\n");
}

}  // namespace onebit::training
