#include "tests/deepspeed/onebit_adam.h"
#include "onebit/base/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "onebit/ops/reduce.h"
#include "onebit/optim/saved_state.h"

namespace onebit::deepspeed {
namespace {

using optim::GradientNeed;
using optim::Phase;
using optim::StepInput;
using optim::StepReport;

constexpr const char* kStateName = "deepspeed_onebit_adam";

optim::AdamOptions without_correction(optim::AdamOptions adam) {
  adam.bias_correction = false;
  return adam;
}

optim::AdamOptions with_frozen_variance(optim::AdamOptions adam) {
  adam.beta2 = 1;
  return adam;
}

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

OneBitAdam::OneBitAdam(const OneBitAdamOptions& options, const params::Table& table,
                       comm::Communicator& communicator)
    : options_(options),
      communicator_(communicator),
      rule_(without_correction(options.adam), table),
      frozen_rule_(with_frozen_variance(rule_.options()), table),
      moments_(optim::Moments::zeros(table)) {
  ONEBIT_INVARIANT(table.device().is_cpu() && options.freeze_step >= 2);
  make_groups(table);
}

void OneBitAdam::make_groups(const params::Table& table) {
  if (!options_.scale_per_tensor) groups_.resize(2);
  for (const params::Parameter& parameter : table.parameters()) {
    const int64_t elements = parameter.declaration.shape.elements();
    const params::Range piece{parameter.range.begin, parameter.range.begin + elements};
    if (options_.scale_per_tensor) groups_.emplace_back();
    Group& group =
        options_.scale_per_tensor ? groups_.back() : groups_[parameter.declaration.decay ? 0 : 1];
    group.pieces.push_back(piece);
    group.elements += elements;
  }
  std::erase_if(groups_, [](const Group& group) { return group.elements == 0; });
}

void OneBitAdam::make_exchanges() {
  exchanges_.clear();
  if (communicator_.world_size() == 1) return;
  for (const Group& group : groups_) {
    exchanges_.push_back(std::make_unique<AllReduce>(communicator_, group.elements));
  }
}

GradientNeed OneBitAdam::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

StepReport OneBitAdam::step(Context& context, params::Table& table, const StepInput& input) {
  if (phase_ == Phase::kCompressed) return compressed_step(context, table, input);
  StepReport report{.phase = Phase::kWarmup};
  rule_.step(context, table, moments_, input);
  ++counter_;
  if (counter_ >= options_.freeze_step) {
    phase_ = Phase::kCompressed;
    make_exchanges();
    report.froze_now = true;
  }
  return report;
}

StepReport OneBitAdam::compressed_step(Context& context, params::Table& table,
                                       const StepInput& input) {
  StepReport report{.phase = Phase::kCompressed};
  const bool finite = ops::all_finite(context, table.gradients());
  const double scale = input.gradient_scale;
  std::array<double, 2> sums{
      finite ? 0.0 : 1.0,
      finite ? scale * scale * ops::squared_norm(context, table.gradients()) : 0.0};
  communicator_.all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  report.local_gradient_square = sums[1] / communicator_.world_size();
  report.applied = sums[0] == 0;
  if (!report.applied) return report;

  const double beta1 = rule_.beta1(input);
  const auto keep = static_cast<float>(beta1), take = static_cast<float>(1 - beta1);
  const auto factor = static_cast<float>(scale);
  const float* gradients = table.gradients().data<float>();
  float* momenta = moments_.momentum.data<float>();
  for (int64_t i = 0; i < table.size_elements(); ++i) {
    momenta[i] = keep * momenta[i] + take * (factor * gradients[i]);
  }
  report.sent_norm = std::sqrt(ops::squared_norm(context, moments_.momentum.view()));
  double residual = 0;
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    exchange(groups_[group], *exchanges_[group]);
    residual += square_sum(exchanges_[group]->worker_residual());
  }
  report.residual_norm = std::sqrt(residual);
  // With both betas 1 the moments stay as they are and the value moves by them.
  StepInput frozen = input;
  frozen.beta1 = 1;
  frozen_rule_.step(context, table, moments_, frozen);
  ++counter_;
  return report;
}

void OneBitAdam::exchange(Group& group, AllReduce& all_reduce) {
  float* momenta = moments_.momentum.data<float>();
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

void OneBitAdam::save(params::StateWriter& writer) const {
  optim::save_state_name(writer, kStateName);
  writer.scalar("counter", counter_);
  moments_.save(writer);
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    writer.own(residual_name("worker", group), view_of(exchanges_[group]->worker_residual()));
    writer.own(residual_name("server", group), view_of(exchanges_[group]->server_residual()));
  }
}

void OneBitAdam::load(Context&, params::Table&, const params::StateReader& reader) {
  optim::check_state_name(reader, kStateName);
  ONEBIT_INVARIANT(reader.saved_world_size() == communicator_.world_size());
  counter_ = reader.scalar("counter").get<int64_t>();
  moments_.load(reader);
  phase_ = counter_ >= options_.freeze_step ? Phase::kCompressed : Phase::kWarmup;
  exchanges_.clear();
  if (phase_ == Phase::kWarmup) return;
  make_exchanges();
  for (size_t group = 0; group < exchanges_.size(); ++group) {
    const auto restore = [&](const char* side, std::span<float> to) {
      const std::vector<float> saved =
          optim::own_buffer(reader, residual_name(side, group), communicator_.rank(),
                            static_cast<int64_t>(to.size()));
      std::copy(saved.begin(), saved.end(), to.begin());
    };
    restore("worker", exchanges_[group]->worker_residual());
    restore("server", exchanges_[group]->server_residual());
  }
}

int64_t OneBitAdam::state_bytes() const {
  int64_t bytes = moments_.size_bytes();
  for (const auto& exchange : exchanges_) {
    bytes += static_cast<int64_t>(
        (exchange->worker_residual().size() + exchange->server_residual().size()) * sizeof(float));
  }
  return bytes;
}

}  // namespace onebit::deepspeed
