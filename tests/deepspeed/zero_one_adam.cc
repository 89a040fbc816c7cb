#include "tests/deepspeed/zero_one_adam.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "tests/deepspeed/local_gradients.h"

namespace onebit::deepspeed {
namespace {

using optim::GradientNeed;
using optim::Phase;
using optim::StepInput;
using optim::StepReport;

constexpr const char* kStateName = "deepspeed_zero_one_adam";

}  // namespace

ZeroOneAdam::ZeroOneAdam(const ZeroOneAdamOptions& options, const ParameterTable& table,
                         comm::Communicator& communicator)
    : options_(options),
      communicator_(communicator),
      weight_decay_(static_cast<size_t>(table.size_elements())),
      momentum_(weight_decay_.size()),
      variance_(weight_decay_.size()),
      movement_(weight_decay_.size()),
      all_reduce_(table, communicator, options.scale_per_tensor) {
  ONEBIT_INVARIANT(table.device().is_cpu());
  for (const auto& [range, decay, group] : table.decay_ranges()) {
    const auto first = weight_decay_.begin();
    std::fill(first + range.begin, first + range.end, decay ? options.adam.weight_decay : 0);
  }
}

bool ZeroOneAdam::averages_next() const {
  return phase_ == Phase::kWarmup && (counter_ + 1) % variance_interval_ == 0;
}

GradientNeed ZeroOneAdam::gradient_need() const {
  return averages_next() ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

StepReport ZeroOneAdam::step(Context& context, ParameterTable& table, const StepInput& input) {
  StepReport report{.phase = phase_};
  const bool local = gradient_need() == GradientNeed::kLocalOnly;
  if (local && !all_are_finite(context, table, communicator_, input, report)) return report;
  if (phase_ == Phase::kWarmup) {
    early_step(table, input);
  } else {
    late_step(table, input);
  }
  if (phase_ == Phase::kWarmup && counter_ > options_.variance_freeze) {
    phase_ = Phase::kCompressed;
    report.froze_now = true;
    // The residuals come from gradients. From now on movements are sent.
    all_reduce_.clear_residuals();
  }
  return report;
}

void ZeroOneAdam::early_step(ParameterTable& table, const StepInput& input) {
  const bool averages = averages_next();
  ++counter_;
  const float* given = table.gradients().data<float>();
  if (averages) {
    update_variance(table, input);
    move(table, input, given, input.gradient_scale, false);
    return count_average();
  }
  std::vector<float> gradients(given, given + momentum_.size());
  for (float& one : gradients) one = static_cast<float>(double{one} * input.gradient_scale);
  all_reduce_.run(gradients.data());
  move(table, input, gradients.data(), 1, false);
}

void ZeroOneAdam::count_average() {
  if (++averages_ < options_.variance_scaler) return;
  averages_ = 0;
  variance_interval_ *= 2;
}

void ZeroOneAdam::update_variance(const ParameterTable& table, const StepInput& input) {
  const double beta2 = options_.adam.beta2;
  const float* gradients = table.gradients().data<float>();
  for (size_t i = 0; i < variance_.size(); ++i) {
    const double g = input.gradient_scale * double{gradients[i]};
    variance_[i] = static_cast<float>(beta2 * double{variance_[i]} + (1 - beta2) * g * g);
  }
}

void ZeroOneAdam::move(ParameterTable& table, const StepInput& input, const float* gradients,
                       double gradient_scale, bool keep) {
  const double beta1 = input.beta1.value_or(options_.adam.beta1);
  float* values = table.values().data<float>();
  for (size_t i = 0; i < momentum_.size(); ++i) {
    const double g = gradient_scale * double{gradients[i]};
    momentum_[i] = static_cast<float>(beta1 * double{momentum_[i]} + (1 - beta1) * g);
    const double d = std::sqrt(double{variance_[i]}) + options_.adam.epsilon;
    const double step =
        input.learning_rate * (double{momentum_[i]} / d + weight_decay_[i] * double{values[i]});
    values[i] = static_cast<float>(double{values[i]} - step);
    if (keep) movement_[i] = static_cast<float>(double{movement_[i]} - step);
  }
}

void ZeroOneAdam::late_step(ParameterTable& table, const StepInput& input) {
  ++counter_;
  rate_sum_ += input.learning_rate;
  move(table, input, table.gradients().data<float>(), input.gradient_scale, true);
  if (counter_ % local_interval_ == 0) synchronize(table);
  if (++updates_in_interval_ < options_.local_scaler) return;
  updates_in_interval_ = 0;
  local_interval_ = std::min(options_.local_limit, 2 * local_interval_);
}

void ZeroOneAdam::synchronize(ParameterTable& table) {
  float* values = table.values().data<float>();
  const auto divisor = [&](size_t i) {
    return std::sqrt(double{variance_[i]}) + options_.adam.epsilon;
  };
  for (size_t i = 0; i < movement_.size(); ++i) {
    values[i] -= movement_[i];
    movement_[i] = static_cast<float>(double{movement_[i]} * divisor(i));
  }
  all_reduce_.run(movement_.data());
  for (size_t i = 0; i < movement_.size(); ++i) {
    if (rate_sum_ > 0) momentum_[i] = static_cast<float>(-double{movement_[i]} / rate_sum_);
    values[i] = static_cast<float>(double{values[i]} + double{movement_[i]} / divisor(i));
    movement_[i] = 0;
  }
  rate_sum_ = 0;
}

void ZeroOneAdam::save(optim::StateWriter& writer) const {
  optim::save_state_name(writer, kStateName);
  writer.scalar("phase", std::string(name_of(phase_)));
  writer.scalar("counters", Json{counter_, variance_interval_, averages_, local_interval_,
                                 updates_in_interval_});
  writer.scalar("rate_sum", rate_sum_);
  for (const auto& [name, values] :
       {std::pair("momentum", &momentum_), std::pair("variance", &variance_),
        std::pair("movement", &movement_)}) {
    writer.own(name, ConstView::of(values->data(), {static_cast<int64_t>(values->size())}));
  }
  all_reduce_.save(writer);
}

void ZeroOneAdam::load(Context&, ParameterTable&, const optim::StateReader& reader) {
  optim::check_state_name(reader, kStateName);
  ONEBIT_INVARIANT(reader.saved_world_size() == communicator_.world_size());
  const bool frozen = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  phase_ = frozen ? Phase::kCompressed : Phase::kWarmup;
  const Json counters = reader.scalar("counters");
  int64_t* const to[] = {&counter_, &variance_interval_, &averages_, &local_interval_,
                         &updates_in_interval_};
  for (size_t i = 0; i < std::size(to); ++i) *to[i] = counters.at(i).get<int64_t>();
  rate_sum_ = reader.scalar("rate_sum").get<double>();
  for (const auto& [name, values] :
       {std::pair("momentum", &momentum_), std::pair("variance", &variance_),
        std::pair("movement", &movement_)}) {
    *values =
        optim::own_buffer(reader, name, communicator_.rank(), static_cast<int64_t>(values->size()));
  }
  all_reduce_.load(reader);
}

int64_t ZeroOneAdam::state_bytes() const {
  return static_cast<int64_t>(3 * momentum_.size() * sizeof(float)) + all_reduce_.size_bytes();
}

}  // namespace onebit::deepspeed
