// One step of a session (session.h): its batches, forward and backward passes of the task, the
// engine's update (engine/engine.cc), sums over the ranks.
#include <algorithm>
#include <span>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"
#include "onebit/training/training/session.h"

namespace onebit::training {
namespace {

constexpr const char* kAgreementPhase = "agreement";

void add(Sums& sums, const Sums& more) {
  if (more.empty()) return;
  if (sums.empty()) sums.resize(more.size());
  ONEBIT_INVARIANT(sums.size() == more.size());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
}

}  // namespace

StepItems Session::fetch_step(StepRecord& record) {
  const Stopwatch watch;
  StepItems step = {.samples = engine_->batch().train,
                    .items = engine_->batch().train,
                    .world_size = communicator_.world_size()};
  int64_t items = 0;
  {
    const PhaseSpan phase(context_, "data");
    for (auto& batch : step_batches_) {
      std::swap(batch, *prefetcher_->next());
      items += batch.labelled();
    }
  }
  record.data_seconds = watch.seconds();
  if (!task_.facts().counts_items) return step;
  const PhaseSpan phase(context_, kAgreementPhase);
  communicator_.all_reduce(std::span(&items, 1), comm::Reduction::kSum);
  step.items = std::max<int64_t>(items, 1);
  return step;
}

model::DeviceBatch Session::upload(const batches::Batch& batch) {
  const PhaseSpan phase(context_, "upload");
  return buffer_->upload(context_, batch);
}

Sums Session::run_pass(const batches::Batch& batch, const StepItems& items,
                       const model::TrainingPass& pass) {
  if (batch.sequences() > 0) {
    return task_.forward_backward(context_, upload(batch), items, pass);
  }
  // The gradients remain as the previous micro-steps left them.
  task_.join_pass(pass);
  if (pass.gradients_ready) pass.gradients_ready({0, table_.size_elements()});
  return {};
}

Sums Session::run_micro_steps(const StepItems& items, StepRecord& record) {
  Sums sums;
  int64_t micro_step = 0;
  for (const auto& batch : step_batches_) {
    const engine::BackwardInput input = engine_->begin_backward();
    Stopwatch watch;
    const auto forward_done = [&] { record.forward_seconds += watch.restart(); };
    const model::TrainingPass pass = {.dropout_seed = engine_->config().run.seed,
                                      .loss_scale = input.loss_scale,
                                      .gradients_ready = input.gradients_ready,
                                      .forward_done = forward_done,
                                      .step = engine_->completed_steps(),
                                      .micro_step = micro_step};
    add(sums, run_pass(batch, items, pass));
    // The host runs ahead of a GPU. The rest of the step would wait for it in any case.
    if (&batch == &step_batches_.back()) context_.synchronize();
    record.backward_seconds += watch.seconds();
    engine_->end_backward(input);
    ++micro_step;
  }
  return sums;
}

StepRecord Session::train_step() {
  const StepSpan span(context_, engine_->completed_steps() + 1);
  const Stopwatch watch;
  StepRecord record;
  StepSums step = {.items = fetch_step(record), .sums = {}};
  step.sums = run_micro_steps(step.items, record);
  double tokens = 0;
  for (const auto& batch : step_batches_) tokens += static_cast<double>(batch.rows());
  step.sums.push_back(tokens);
  comm::Request sums_ready =
      communicator_.start_all_reduce(std::span<double>(step.sums), comm::Reduction::kSum);
  record.outcome = engine_->step().value();
  {
    const PhaseSpan phase(context_, kAgreementPhase);
    sums_ready.wait();
  }
  record.step_tokens = static_cast<int64_t>(step.sums.back());
  step.sums.pop_back();
  samples_ += step.items.samples;
  step.samples = samples_;
  record.samples = samples_;
  record.step_samples = step.items.samples;
  StepMetrics metrics = task_.metrics(step);
  record.loss = metrics.loss;
  record.metrics = std::move(metrics.metrics);
  record.seconds = watch.seconds();
  return record;
}

}  // namespace onebit::training
