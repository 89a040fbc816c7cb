#include "tests/deepspeed/onebit_adam.h"

#include <cmath>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/ops/reduce.h"
#include "tests/deepspeed/local_gradients.h"

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

}  // namespace

OneBitAdam::OneBitAdam(const OneBitAdamOptions& options, const ParameterTable& table,
                       comm::Communicator& communicator)
    : options_(options),
      communicator_(communicator),
      rule_(without_correction(options.adam), table),
      frozen_rule_(with_frozen_variance(rule_.options()), table),
      moments_(optim::Moments::zeros(table)),
      all_reduce_(table, communicator, options.scale_per_tensor) {
  ONEBIT_INVARIANT(table.device().is_cpu() && options.freeze_step >= 2);
}

GradientNeed OneBitAdam::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

StepReport OneBitAdam::step(Context& context, ParameterTable& table, const StepInput& input) {
  if (phase_ == Phase::kCompressed) return compressed_step(context, table, input);
  StepReport report{.phase = Phase::kWarmup};
  rule_.step(context, table, moments_, input);
  ++counter_;
  if (counter_ >= options_.freeze_step) {
    phase_ = Phase::kCompressed;
    report.froze_now = true;
  }
  return report;
}

StepReport OneBitAdam::compressed_step(Context& context, ParameterTable& table,
                                       const StepInput& input) {
  StepReport report{.phase = Phase::kCompressed};
  if (!all_are_finite(context, table, communicator_, input, report)) return report;

  const double beta1 = rule_.beta1(input);
  const auto keep = static_cast<float>(beta1), take = static_cast<float>(1 - beta1);
  const auto factor = static_cast<float>(input.gradient_scale);
  const float* gradients = table.gradients().data<float>();
  float* momenta = moments_.momentum.data<float>();
  for (int64_t i = 0; i < table.size_elements(); ++i) {
    momenta[i] = keep * momenta[i] + take * (factor * gradients[i]);
  }
  report.sent_norm = std::sqrt(ops::squared_norm(context, moments_.momentum.view()));
  all_reduce_.run(momenta);
  report.residual_norm = all_reduce_.worker_residual_norm();
  // With both betas 1 the moments stay constant and only the value is updated.
  StepInput frozen = input;
  frozen.beta1 = 1;
  frozen_rule_.step(context, table, moments_, frozen);
  ++counter_;
  return report;
}

void OneBitAdam::save(optim::StateWriter& writer) const {
  optim::save_state_name(writer, kStateName);
  writer.scalar("counter", counter_);
  moments_.save(writer);
  all_reduce_.save(writer);
}

void OneBitAdam::load(Context&, ParameterTable&, const optim::StateReader& reader) {
  optim::check_state_name(reader, kStateName);
  ONEBIT_INVARIANT(reader.saved_world_size() == communicator_.world_size());
  counter_ = reader.scalar("counter").get<int64_t>();
  moments_.load(reader);
  phase_ = counter_ >= options_.freeze_step ? Phase::kCompressed : Phase::kWarmup;
  all_reduce_.load(reader);
}

int64_t OneBitAdam::state_bytes() const {
  const int64_t elements = moments_.momentum.view().elements();
  return static_cast<int64_t>(sizeof(float)) * 2 * elements + all_reduce_.size_bytes();
}

}  // namespace onebit::deepspeed
