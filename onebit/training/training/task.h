// One task's part of a training session: model, batches, loss, metrics, evaluation. Everything else
// in a run belongs to the session (session.h) and is the same for every task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/training/training/best_model.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/evaluation.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/session_config.h"
#include "onebit/training/training/table_rows.h"

namespace onebit::training {

// The source of a task's batches.

// Determines which samples of a step this rank gets (batches/step_dealer.h). All members but `rank`
// are equal on all ranks.
struct StreamShare : batches::DealOptions {
  int threads = 1;  // for computations made once, at the start
};

// The batches of one rank, in an order of samples that all ranks share. Usable from any number of
// threads.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills `batch` with micro-step `micro_step` of the step that begins at global sample
  // `first_sample`. It may get no sample (batches/step_dealer.h). A pure function of its arguments:
  // the sample counter is the position.
  virtual void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) = 0;
  // The largest sizes of any batch.
  virtual batches::BatchBounds bounds() const = 0;
  // 0 if epochs have no common length (several token stores).
  virtual uint64_t samples_per_epoch() const { return 0; }
  // Members of a checkpoint's client state, and of the model card, from which Task::open() detects
  // changed data.
  virtual Json identity() const = 0;
  // Further members, from which it restores the position after `samples`.
  virtual Json position(uint64_t samples) = 0;
};

// The counts over which the loss of a step is averaged, summed over its micro-steps and all ranks.
struct StepItems {
  int64_t samples = 0;
  int64_t items =
      0;  // at least 1: the labelled rows with TaskFacts::counts_items, else the samples
  int world_size = 1;

  // The weight of one item out of `count` with which the engine's average over ranks equals the
  // mean over items, however the items are distributed over ranks and micro-steps.
  double weight(int64_t count) const {
    return static_cast<double>(world_size) / static_cast<double>(count);
  }
};

// Sums over micro-batches, in an order that the task chooses.
using Sums = std::vector<double>;

// A completed step, over all ranks.
struct StepSums {
  StepItems items;
  Sums sums;
  int64_t samples = 0;  // consumed since the beginning of the run, this step's included
};

struct StepMetrics {
  double loss = 0;
  std::vector<metrics::Metric> metrics;  // besides the loss
};

// The fraction of the model's layers that the passes of a range of steps compute.
struct ComputedLayers {
  double share = 1;  // on average
  std::string text;  // for the start table. Empty: all layers
};

// Facts about a task that the session reads directly. The task's constructor fills them in. open()
// fills in the ones about held-out data.
struct TaskFacts {
  std::string name;  // the recipe's key "task"
  // Whether the loss is averaged over the labelled rows of all ranks, which must then be counted
  // before the first pass of a step, instead of over the samples.
  bool counts_items = false;
  DrawnMetric drawn = {};

  EvaluationTimes evaluations = {};
  batches::BatchBounds evaluation_bounds = {};    // the largest sizes of a batch of evaluate()
  std::vector<uint32_t> held_out_checksums = {};  // of the held-out data's contents
  // Selects the best model, which is kept in the run's folder. Without evaluations the last model
  // is kept. Without a metric, models are stored in checkpoints only.
  KeptBy kept_by = {};

  // For the start table.
  Rows data_rows = {};                      // the data of training and evaluation
  std::string sequences;                    // "sequences of 128"
  std::vector<std::string> decisions = {};  // made automatically

  // A command that uses the model, printed at the end. {} stands for the model's folder.
  std::string use = {};
};

class Task {
 public:
  virtual ~Task() = default;

  const TaskFacts& facts() const { return facts_; }
  virtual const engine::EngineConfig& config() const = 0;
  virtual const SessionConfig& session_config() const = 0;
  // Describes the model for a model folder, without the values.
  virtual const ModelDescription& description() const = 0;

  // Declares the parameters of the model and its heads.
  virtual void declare(ParameterTable& table) = 0;
  // Opens the batches. Called once. `saved` is the client state of the checkpoint from which the
  // run is resumed, or null. Changes since then are reported as decisions. Error: the run cannot
  // continue with the changed data.
  virtual std::unique_ptr<BatchSource> open(const StreamShare& share, const Json* saved) = 0;
  // Reserves the memory of every pass over batches up to `limits`.
  virtual model::MemoryPlan plan(Context& context, const model::BatchLimits& limits) = 0;
  // Sets the initial values, and returns a description of their origin.
  virtual std::string fill(ParameterTable& table) = 0;

  // Adds a micro-batch's gradients to the table's. Returns its sums, always equally many.
  virtual Sums forward_backward(Context& context, const model::DeviceBatch& batch,
                                const StepItems& items, const model::TrainingPass& pass) = 0;
  // Called instead of forward_backward() in a micro-step in which only other ranks have samples:
  // takes part in the communication of their passes.
  virtual void join_pass(const model::TrainingPass& /*pass*/) {}
  virtual StepMetrics metrics(const StepSums& step) const = 0;

  // The result is equal on all ranks. Collective. Called only if facts().evaluations.any().
  virtual Evaluation evaluate(Context& /*context*/, DeviceBatchBuffer& /*buffer*/,
                              comm::Communicator& /*communicator*/) {
    return {};
  }
  // The record of an evaluation in words, for the end table.
  virtual std::string describe(const std::vector<metrics::Metric>& /*record*/) const { return ""; }
  // Describes the change between two records of one run. Empty: nothing to add.
  virtual std::string describe_change(const std::vector<metrics::Metric>& /*before*/,
                                      const std::vector<metrics::Metric>& /*after*/) const {
    return "";
  }
  // Writes the files of the last evaluation beside a kept model. Called on rank 0 only.
  virtual void write_beside_model(const Path& /*folder*/) const {}

  // The layers that the steps [from, to) compute.
  virtual ComputedLayers computed_layers(int64_t /*from*/, int64_t /*to*/) const { return {}; }

 protected:
  void decided(const std::vector<std::string>& lines) {
    facts_.decisions.insert(facts_.decisions.end(), lines.begin(), lines.end());
  }

  TaskFacts facts_;
};

}  // namespace onebit::training
