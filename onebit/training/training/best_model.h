// The best model of a run, kept in the run's folder as a model folder of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::training {

// The metric in the records of evaluations that selects the best model. Empty: none is kept.
struct KeptBy {
  std::string metric;
  bool smaller_is_better = false;
};

struct KeptModel {
  int64_t step = 0;
  std::vector<metrics::Metric> record;  // of its evaluation
};

// Finds the metric `wanted` among the metrics of an evaluation, or the first one if `wanted` is
// empty. Empty: no metric has this name.
std::optional<KeptBy> find_kept_by(std::span<const metrics::MetricName> names,
                                   const std::string& wanted);

Json to_json(const KeptModel& kept);
// Error: a member is not a number.
KeptModel kept_model_from(JsonReader json);

class BestModel {
 public:
  BestModel(Path output, KeptBy kept_by)
      : output_(std::move(output)), kept_by_(std::move(kept_by)) {}

  // The run's.
  const Path& folder() const { return output_; }
  const std::optional<KeptModel>& best() const { return best_; }
  // Whether a model of this record is better than the best so far.
  bool is_better(const std::vector<metrics::Metric>& record) const;
  // Compares two models by the contents of their evaluation.json.
  bool is_better(const Json& evaluation, const Json& than) const;
  void set(KeptModel kept) { best_ = std::move(kept); }

  // Called after a resume from the checkpoint of `step`. `client_state` is the checkpoint's, with
  // the member "best" if there was one. That model becomes the best so far if it is the folder's,
  // or the folder's if it is of this step. If not, there is no best so far, and a line to report is
  // returned: write() was interrupted, or the folder's model is of a later step or of steps that
  // the run has gone back on. What follows may differ from what made it.
  std::optional<std::string> resume(const Json& client_state, int64_t step);
  // From now on there is no best so far.
  void forget() { best_.reset(); }

  // Replaces the model in the run's folder and evaluation.json, file by file. Called on one rank
  // only.
  void write(const ParameterTable& table, const ModelDescription& description,
             const ModelCard& card) const;

 private:
  Path output_;
  KeptBy kept_by_;
  std::optional<KeptModel> best_;
};

}  // namespace onebit::training
