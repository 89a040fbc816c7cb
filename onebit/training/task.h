// What one task adds to a training session: model, batches, loss, metrics, evaluation. Everything
// else of a run is the session's (session.h), the same for every task.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/engine/config.h"
#include "onebit/model/memory_plan.h"
#include "onebit/model/training_pass.h"
#include "onebit/training/batch_source.h"
#include "onebit/training/evaluation.h"
#include "onebit/training/model_folder.h"
#include "onebit/training/rows.h"

namespace onebit::training {

// What the loss of a step is a mean over: counts over its micro-steps and all ranks.
struct StepItems {
  int64_t samples = 0;
  int64_t items = 0;  // at least 1; the samples unless Task::counts_items()
  int world_size = 1;

  // The weight of one of `count` such that the engine's average over the ranks is the mean.
  double weight(int64_t count) const {
    return static_cast<double>(world_size) / static_cast<double>(count);
  }
};

// Sums over micro-batches, in an order that the task chooses.
using Sums = std::vector<double>;

// A step that has been made, over all ranks.
struct StepSums {
  StepItems items;
  Sums sums;
  int64_t samples = 0;  // consumed since the beginning of the run, this step's included
};

struct StepMetrics {
  double loss = 0;
  std::vector<metrics::Metric> metrics;  // besides the loss
};

class Task {
 public:
  virtual ~Task() = default;

  // The recipe's key "task".
  virtual std::string_view name() const = 0;
  virtual const engine::EngineConfig& config() const = 0;
  // What a model folder needs besides the values.
  virtual const ModelDescription& description() const = 0;

  // Declares the parameters of the model and its heads.
  virtual void declare(params::Table& table) = 0;
  // The batches; of a run that is resumed from the position in `saved`, the checkpoint's client
  // state, else null. Called once.
  virtual std::unique_ptr<BatchSource> open(const StreamShare& share, const Json* saved) = 0;
  // The most a batch of evaluate() holds.
  virtual data::BatchBounds evaluation_bounds() const { return {}; }
  // Books the memory of every pass over batches up to `limits`.
  virtual model::MemoryPlan plan(Context& context, const model::BatchLimits& limits) = 0;
  // Sets the first values; returns where they come from.
  virtual std::string fill(params::Table& table) = 0;
  // Looks at the client state that a run is resumed from; returns what is not as it was. Error:
  // data with which the run cannot go on. `place` names the checkpoint's model.
  virtual std::vector<std::string> resume(const Json& /*client_state*/,
                                          const std::string& /*place*/) {
    return {};
  }

  // Whether HostBatch::items() is to be counted over all ranks before the first pass of a step.
  virtual bool counts_items() const { return false; }
  // Adds a micro-batch's gradients to the table's. Returns its sums, as many each time.
  virtual Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                const StepItems& items, const model::TrainingPass& pass) = 0;
  virtual StepMetrics metrics(const StepSums& step) const = 0;
  virtual DrawnMetric drawn() const { return {}; }

  virtual EvaluationTimes evaluation_times() const { return {}; }
  // Equal on all ranks. Collective. Called only where evaluation_times() asks for it.
  virtual Evaluation evaluate(Context& /*context*/, DeviceBatchBuffer& /*buffer*/,
                              comm::Communicator& /*communicator*/) {
    return {};
  }
  // The record of an evaluation in words, for the table at the end.
  virtual std::string describe(const std::vector<metrics::Metric>& /*record*/) const { return ""; }
  // The metric of an evaluation's record (the larger the better) by which the best model is kept in
  // the run's folder; the last one where there are no evaluations. Empty: models are in checkpoints
  // only.
  virtual std::string kept_by() const { return ""; }
  // Writes files of the last evaluation that belong beside a kept model. Rank 0 alone.
  virtual void write_beside_model(const Path& /*folder*/) const {}

  // For the table at the start: what is trained and evaluated on; "sequences of 128"; what was
  // decided automatically.
  virtual Rows data_rows() const = 0;
  virtual std::string sequences() const = 0;
  virtual std::vector<std::string> decisions() const { return {}; }
};

}  // namespace onebit::training
