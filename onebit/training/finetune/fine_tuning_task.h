// The common part of tasks that fine-tune a model: a recipe, a checkpoint to start from, and a file
// of examples that is in memory as a whole, so that the sample counter is the position in it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/session.h"
#include "onebit/training/training/session_config.h"
#include "onebit/training/training/task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::finetune {

// The batches of a training file whose items are all in memory. `Stream` has the members build(),
// bounds() and samples_per_epoch() of a BatchSource. Every epoch has equally many items, so that
// the sample counter is the whole position, and a checkpoint only records whether the items are the
// same.
template <typename Stream>
class ItemSource : public training::BatchSource {
 public:
  ItemSource(Stream stream, Json identity)
      : stream_(std::move(stream)), identity_(std::move(identity)) {}

  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) override {
    stream_.build(first_sample, micro_step, batch);
  }
  batches::BatchBounds bounds() const override { return stream_.bounds(); }
  uint64_t samples_per_epoch() const override { return stream_.samples_per_epoch(); }
  Json identity() const override { return identity_; }
  // The number of samples is the position.
  Json position(uint64_t /*samples*/) override { return Json::object(); }

 private:
  Stream stream_;
  Json identity_;
};

// The start table names so many labels of the training data.
inline constexpr size_t kMaxLabelsShown = 10;

// Data in the checkpoints of a fine-tuning run that show whether it is resumed with the same data.
class DataIdentity {
 public:
  // `members` are the facts on which the model or the positions in the data depend (labels, a
  // number of sequences), in the order in which they are compared, and as "data" a checksum of the
  // contents. `source` is the training file, `contents` describes it: "texts or labels".
  DataIdentity(Json members, std::string source, std::string contents)
      : members_(std::move(members)), source_(std::move(source)), contents_(std::move(contents)) {}

  // The members for the client state of checkpoints.
  const Json& members() const { return members_; }
  // Compares with the client state `saved` from which a run is resumed, and returns a line if the
  // contents have changed. Error: a member other than the checksum differs, so that the run cannot
  // continue. `place` names the recipe.
  std::vector<std::string> continued(const Json& saved, const std::string& place) const;

 private:
  Json members_;
  std::string source_, contents_;
};

// `Config` is a FineTuningConfig (fine_tuning_config.h). `Model` has the plan() of the classes in
// onebit/math/model.
template <typename Config, typename Model>
class FineTuningTask : public training::Task {
 public:
  const engine::EngineConfig& config() const final { return config_.engine; }
  const training::SessionConfig& session_config() const final { return config_.session; }
  const training::ModelDescription& description() const final { return description_; }

  std::unique_ptr<training::BatchSource> open(const training::StreamShare& share,
                                              const Json* saved) final {
    const DataIdentity here = identity();
    if (saved != nullptr) decided(here.continued(*saved, config_.engine.place));
    return make_source(share, here.members());
  }
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits) final {
    return model_->plan(context, limits, config_.memory, true);
  }
  std::string describe(const std::vector<metrics::Metric>& record) const override {
    return metrics::text_of(record, facts_.kept_by.metric);
  }

 protected:
  // `model` is resolved by find_model_folder().
  FineTuningTask(Path model, Config config)
      : model_folder_(std::move(model)), config_(std::move(config)) {}

  // The ranks of the run, over the transport that the recipe requests.
  comm::Communicator& open_ranks(const training::Connection& connection) const {
    return connection.open(config_.engine.transport);
  }

  // The identity of the training file.
  virtual DataIdentity identity() const = 0;
  // The batches of the training file. Checkpoints keep `identity` as the position.
  virtual std::unique_ptr<training::BatchSource> make_source(const training::StreamShare& share,
                                                             Json identity) = 0;

  // Computes run.steps if the recipe gives epochs, each of `samples` samples.
  void choose_steps(uint64_t samples, int world_size) {
    if (config_.engine.run.steps > 0) return;
    facts_.decisions.push_back(
        training::choose_steps(config_.engine, config_.epochs, samples, world_size));
  }

  // Adds a file on which the model is evaluated, after every epoch and run.evaluate_every steps.
  // `content` is its size in words, `bounds` the largest sizes of a batch.
  void add_dev_file(const std::string& source, const std::string& content,
                    const batches::BatchBounds& bounds, uint32_t checksum) {
    facts_.data_rows.push_back({"evaluated on", source + ": " + content});
    facts_.evaluations = {.by_steps = true, .by_epochs = true};
    facts_.evaluation_bounds.include(bounds);
    facts_.held_out_checksums.push_back(checksum);
  }

  // The evaluation on the dev files since `watch` was made.
  training::Evaluation evaluation_of(std::vector<metrics::Metric> record,
                                     const Stopwatch& watch) const {
    training::Evaluation evaluation = {.key = "dev", .metrics = record};
    evaluation.metrics.push_back({"seconds", watch.seconds()});
    evaluation.line = describe(record);
    evaluation.record = std::move(record);
    return evaluation;
  }

  static void write_scores(const Path& folder, const Json& scores) {
    write_file_atomically(folder / run_files::kScores, json_text(scores, 2) + "\n");
  }

  Path model_folder_;
  Config config_;
  training::ModelDescription description_;
  std::unique_ptr<Model> model_;  // null before declare()
};

}  // namespace onebit::finetune
