#include "onebit/optim/deepspeed_onebit_adam.h"

#include <array>
#include <cmath>
#include <cstring>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/ops/reduce.h"
#include "onebit/optim/own_buffer.h"
#include "onebit/optim/state_name.h"
#include "onebit/optim/still_entries.h"

namespace onebit::optim {
namespace {

constexpr const char* kName = "deepspeed_onebit_adam";

double square_sum(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

View view_of(std::span<float> values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

std::string residual_name(const char* side, size_t group) {
  return fmt::format("{}_residual.{}", side, group);
}

}  // namespace

DeepSpeedOneBitAdam::DeepSpeedOneBitAdam(const OptimizerConfig& config, const params::Table& table,
                                         comm::Communicator& communicator, const RunFacts& run)
    : config_(config), communicator_(communicator), moments_(table, config.weight_decay) {
  require(table.device().is_cpu(),
          "optimizer.params.parity \"deepspeed\" compares arithmetic and runs on a CPU only; "
          "remove it, or use --device cpu");
  make_groups(table);
  for (const auto& [name, rows] : config.moving_rows) {
    held_.push_back(held_range(table, name, rows));
  }
  if (run.total_steps > 0 && *config.freeze_step > run.total_steps) {
    log_warning(
        "optimizer.params.freeze_step = {} is beyond the run ({} steps): nothing will be "
        "compressed",
        *config.freeze_step, run.total_steps);
  }
}

void DeepSpeedOneBitAdam::make_groups(const params::Table& table) {
  if (!config_.scale_per_tensor) groups_.resize(2);
  for (const params::Parameter& parameter : table.parameters()) {
    const int64_t elements = parameter.declaration.shape.elements();
    const params::Range piece{parameter.range.begin, parameter.range.begin + elements};
    if (config_.scale_per_tensor) groups_.emplace_back();
    Group& group =
        config_.scale_per_tensor ? groups_.back() : groups_[parameter.declaration.decay ? 0 : 1];
    group.pieces.push_back(piece);
    group.elements += elements;
  }
  std::erase_if(groups_, [](const Group& group) { return group.elements == 0; });
}

void DeepSpeedOneBitAdam::make_exchanges() {
  exchanges_.clear();
  if (communicator_.world_size() == 1) return;
  for (const Group& group : groups_) {
    exchanges_.push_back(
        std::make_unique<compress::ParityAllReduce>(communicator_, group.elements));
  }
}

GradientNeed DeepSpeedOneBitAdam::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

bool DeepSpeedOneBitAdam::observes_local_gradients() const {
  return phase_ == Phase::kWarmup &&
         counter_ + FreezeRule::kObservedUpdates >= *config_.freeze_step;
}

StepReport DeepSpeedOneBitAdam::step(Context& context, params::Table& table,
                                     const StepInput& input) {
  if (phase_ == Phase::kCompressed) return compressed_step(context, table, input);
  const Stopwatch watch;
  moments_.step(context, table, config_, input);
  ++counter_;
  StepReport report{.phase = Phase::kWarmup};
  if (counter_ >= *config_.freeze_step) {
    phase_ = Phase::kCompressed;
    make_exchanges();
    report.froze_now = true;
  }
  report.update_seconds = watch.seconds();
  return report;
}

StepReport DeepSpeedOneBitAdam::compressed_step(Context& context, params::Table& table,
                                                const StepInput& input) {
  StepReport report{.phase = Phase::kCompressed};
  Stopwatch watch;
  const bool finite = ops::all_finite(context, table.gradients());
  const double scale = input.gradient_scale;
  std::array<double, 2> sums{
      finite ? 0.0 : 1.0,
      finite ? scale * scale * ops::squared_norm(context, table.gradients()) : 0.0};
  communicator_.all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  report.local_gradient_square = sums[1] / communicator_.world_size();
  report.applied = sums[0] == 0;
  if (!report.applied) return report;

  const double beta1 = input.beta1.value_or(config_.beta1);
  const auto keep = static_cast<float>(beta1), take = static_cast<float>((1 - beta1));
  const auto factor = static_cast<float>(scale);
  const float* gradients = table.gradients().data<float>();
  float* momenta = momentum().data<float>();
  context.parallel_for(table.size_elements(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      momenta[i] = keep * momenta[i] + take * (factor * gradients[i]);
    }
  });
  report.sent_norm = std::sqrt(ops::squared_norm(context, momentum()));
  double residual = 0;
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    exchange(groups_[group], *exchanges_[group]);
    residual += square_sum(exchanges_[group]->worker_residual());
  }
  report.residual_norm = std::sqrt(residual);
  mask();
  report.compress_seconds = watch.restart();
  // With both betas 1 the moments stay as they are and the value moves by them.
  OptimizerConfig frozen = config_;
  frozen.beta2 = 1;
  StepInput frozen_input = input;
  frozen_input.beta1 = 1;
  moments_.step(context, table, frozen, frozen_input);
  ++counter_;
  report.update_seconds = watch.seconds();
  return report;
}

void DeepSpeedOneBitAdam::exchange(Group& group, compress::ParityAllReduce& all_reduce) {
  float* momenta = momentum().data<float>();
  staged_.resize(static_cast<size_t>(group.elements));
  float* at = staged_.data();
  for (const auto& [begin, end] : group.pieces) at = std::copy(momenta + begin, momenta + end, at);
  all_reduce.run(staged_);
  const float* from = staged_.data();
  for (const auto& [begin, end] : group.pieces) {
    std::copy(from, from + (end - begin), momenta + begin);
    from += end - begin;
  }
}

void DeepSpeedOneBitAdam::mask() {
  float* momenta = momentum().data<float>();
  for (const auto& [begin, end] : held_) std::fill(momenta + begin, momenta + end, 0.0f);
}

void DeepSpeedOneBitAdam::save(params::StateWriter& writer) const {
  save_state_name(writer, kName);
  writer.scalar("counter", counter_);
  writer.scalar("scale_per_tensor", config_.scale_per_tensor);
  moments_.save(writer);
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    writer.own(residual_name("worker", group), view_of(exchanges_[group]->worker_residual()));
    writer.own(residual_name("server", group), view_of(exchanges_[group]->server_residual()));
  }
}

void DeepSpeedOneBitAdam::load(Context&, params::Table&, const params::StateReader& reader) {
  check_state_name(reader, kName);
  counter_ = reader.scalar("counter").get<int64_t>();
  moments_.load(reader);
  phase_ = counter_ >= *config_.freeze_step ? Phase::kCompressed : Phase::kWarmup;
  exchanges_.clear();
  if (phase_ == Phase::kWarmup) return;
  make_exchanges();
  if (communicator_.world_size() == 1 && reader.saved_world_size() == 1) return;
  const bool same = reader.saved_world_size() == communicator_.world_size() &&
                    reader.scalar("scale_per_tensor") == config_.scale_per_tensor &&
                    reader.has(residual_name("worker", 0));
  if (!same) {
    log_warning(
        "parity \"deepspeed\": error feedback starts at zero, as DeepSpeed's does at every "
        "load, because the number of ranks or the granularity has changed");
    return;
  }
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    const auto restore = [&](const char* side, std::span<float> to) {
      const std::vector<float> saved =
          own_buffer(reader, residual_name(side, group), communicator_.rank(),
                     static_cast<int64_t>(to.size()));
      std::copy(saved.begin(), saved.end(), to.begin());
    };
    restore("worker", exchanges_[group]->worker_residual());
    restore("server", exchanges_[group]->server_residual());
  }
}

int64_t DeepSpeedOneBitAdam::saved_bytes(Phase phase) const {
  const int64_t ranks = communicator_.world_size();
  int64_t residual_elements = 0;
  if (phase == Phase::kCompressed && ranks > 1) {
    for (const Group& group : groups_) {
      residual_elements += (ranks + 1) * compress::parity_padded_elements(
                                             group.elements, communicator_.world_size());
    }
  }
  return moments_.size_bytes() + residual_elements * static_cast<int64_t>(sizeof(float));
}

int64_t DeepSpeedOneBitAdam::state_bytes() const {
  int64_t bytes = moments_.size_bytes();
  for (const auto& exchange : exchanges_) {
    bytes += static_cast<int64_t>(
        (exchange->worker_residual().size() + exchange->server_residual().size()) * sizeof(float));
  }
  return bytes;
}

}  // namespace onebit::optim
