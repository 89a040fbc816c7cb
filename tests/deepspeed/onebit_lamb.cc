#include "tests/deepspeed/onebit_lamb.h"

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

constexpr const char* kStateName = "deepspeed_onebit_lamb";

int64_t elements_of(const ParameterTable& table) {
  int64_t elements = 0;
  for (const Parameter& parameter : table.parameters()) {
    elements += parameter.declaration.shape.elements();
  }
  return elements;
}

View view_of(std::span<float> values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

ConstView view_of(std::span<const float> values) {
  return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
}

double norm(const std::vector<double>& values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return std::sqrt(square);
}

}  // namespace

OneBitLamb::OneBitLamb(const OneBitLambOptions& options, const ParameterTable& table,
                       comm::Communicator& communicator)
    : options_(options),
      communicator_(communicator),
      momentum_(
          static_cast<size_t>(padded_elements(elements_of(table), communicator.world_size()))),
      variance_(momentum_.size()),
      fresh_variance_(momentum_.size()),
      all_reduce_(communicator, static_cast<int64_t>(momentum_.size())) {
  ONEBIT_INVARIANT(table.device().is_cpu() && options.freeze_step >= 2);
  int64_t place = 0;
  for (const Parameter& parameter : table.parameters()) {
    const int64_t begin = parameter.range.begin;
    const int64_t elements = parameter.declaration.shape.elements();
    tensors_.push_back(
        {.range = {begin, begin + elements},
         .place = place,
         .weight_decay = parameter.declaration.decay ? options.adam.weight_decay : 0});
    place += elements;
  }
}

GradientNeed OneBitLamb::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

StepReport OneBitLamb::step(Context& context, ParameterTable& table, const StepInput& input) {
  if (phase_ == Phase::kCompressed) return compressed_step(context, table, input);
  StepReport report{.phase = Phase::kWarmup};
  for (TensorState& tensor : tensors_) warm_up(tensor, table, input);
  ++counter_;
  if (counter_ >= options_.freeze_step) {
    freeze();
    report.froze_now = true;
  }
  return report;
}

void OneBitLamb::warm_up(TensorState& tensor, ParameterTable& table, const StepInput& input) {
  const optim::AdamOptions& adam = options_.adam;
  float* values = table.values().data<float>() + tensor.range.begin;
  const float* gradients = table.gradients().data<float>() + tensor.range.begin;
  std::vector<double> update, before;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<size_t>(tensor.place + i);
    const double g = input.gradient_scale * double{gradients[i]};
    const double m = adam.beta1 * double{momentum_[at]} + (1 - adam.beta1) * g;
    const double v = adam.beta2 * double{variance_[at]} + (1 - adam.beta2) * g * g;
    momentum_[at] = static_cast<float>(m);
    variance_[at] = static_cast<float>(v);
    before.push_back(double{values[i]});
    update.push_back(m / (std::sqrt(v) + adam.epsilon) + tensor.weight_decay * double{values[i]});
  }
  const double value_norm = norm(before), update_norm = norm(update);
  double ratio = 1;
  if (value_norm > 0 && update_norm > 0) {
    ratio = std::clamp(value_norm / update_norm, options_.min_ratio, options_.max_ratio);
  }
  const double beta = options_.ratio_beta;
  if (ratio != 1) tensor.frozen_ratio = beta * tensor.frozen_ratio + (1 - beta) * ratio;
  tensor.coefficient = ratio;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    values[i] = static_cast<float>(before[at] - input.learning_rate * ratio * update[at]);
  }
}

void OneBitLamb::freeze() {
  phase_ = Phase::kCompressed;
  fresh_variance_ = variance_;
  std::vector<double> sizes;
  double mean = 0;
  for (const TensorState& tensor : tensors_) {
    double square = 0;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      square += std::pow(double{momentum_[static_cast<size_t>(tensor.place + i)]}, 2);
    }
    sizes.push_back(std::sqrt(square / static_cast<double>(tensor.elements())));
    mean += sizes.back() / static_cast<double>(tensors_.size());
  }
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].scaling = mean / sizes[i];
}

StepReport OneBitLamb::compressed_step(Context& context, ParameterTable& table,
                                       const StepInput& input) {
  StepReport report{.phase = Phase::kCompressed};
  if (!all_are_finite(context, table, communicator_, input, report)) return report;
  const double beta1 = options_.adam.beta1;
  const std::vector<float> before = momentum_;
  for (const TensorState& tensor : tensors_) {
    const float* gradients = table.gradients().data<float>() + tensor.range.begin;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      float& m = momentum_[static_cast<size_t>(tensor.place + i)];
      const double g = input.gradient_scale * double{gradients[i]};
      m = static_cast<float>((beta1 * double{m} + (1 - beta1) * g) * tensor.scaling);
    }
  }
  if (communicator_.world_size() > 1) all_reduce_.run(momentum_);
  for (TensorState& tensor : tensors_) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      float& m = momentum_[static_cast<size_t>(tensor.place + i)];
      m = static_cast<float>(double{m} / tensor.scaling);
    }
    follow_variance(tensor, before);
    move(tensor, table, input);
  }
  ++counter_;
  return report;
}

void OneBitLamb::follow_variance(const TensorState& tensor, const std::vector<float>& before) {
  const double beta1 = options_.adam.beta1, beta2 = options_.adam.beta2;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<size_t>(tensor.place + i);
    const double g = (double{momentum_[at]} - beta1 * double{before[at]}) / (1 - beta1);
    fresh_variance_[at] =
        static_cast<float>(beta2 * double{fresh_variance_[at]} + (1 - beta2) * g * g);
  }
}

void OneBitLamb::move(TensorState& tensor, ParameterTable& table, const StepInput& input) {
  float* values = table.values().data<float>() + tensor.range.begin;
  const double epsilon = options_.adam.epsilon;
  std::vector<double> plain, update;
  double factor = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<size_t>(tensor.place + i);
    const double d = std::sqrt(double{variance_[at]}) + epsilon;
    factor = std::max(factor, d / (std::sqrt(double{fresh_variance_[at]}) + epsilon));
    plain.push_back(double{momentum_[at]} / d);
    update.push_back(plain.back() + tensor.weight_decay * double{values[i]});
  }
  if (tensor.weight_decay > 0) {
    const double share = std::min(1.0, norm(plain) / norm(update));
    factor = factor * share + 1 - share;
  }
  const double threshold = options_.factor_threshold;
  factor = std::clamp(factor, options_.factor_min, options_.factor_max);
  factor = std::clamp(factor, tensor.last_factor * (1 - threshold),
                      tensor.last_factor * (1 + threshold));
  tensor.last_factor = factor;
  tensor.coefficient = tensor.frozen_ratio * factor;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double step = input.learning_rate * tensor.coefficient * update[static_cast<size_t>(i)];
    values[i] = static_cast<float>(double{values[i]} - step);
  }
}

void OneBitLamb::save(optim::StateWriter& writer) const {
  optim::save_state_name(writer, kStateName);
  writer.scalar("counter", counter_);
  Json tensors = Json::array();
  for (const TensorState& tensor : tensors_) {
    tensors.push_back({tensor.frozen_ratio, tensor.last_factor, tensor.scaling});
  }
  writer.scalar("tensors", tensors);
  for (const auto& [name, values] :
       {std::pair("momentum", &momentum_), std::pair("variance", &variance_),
        std::pair("fresh_variance", &fresh_variance_)}) {
    writer.replicated(name, view_of(std::span<const float>(*values)));
  }
  all_reduce_.save(writer);
}

void OneBitLamb::load(Context&, ParameterTable&, const optim::StateReader& reader) {
  optim::check_state_name(reader, kStateName);
  ONEBIT_INVARIANT(reader.saved_world_size() == communicator_.world_size());
  counter_ = reader.scalar("counter").get<int64_t>();
  phase_ = counter_ >= options_.freeze_step ? Phase::kCompressed : Phase::kWarmup;
  const Json tensors = reader.scalar("tensors");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].frozen_ratio = tensors.at(i).at(0).get<double>();
    tensors_[i].last_factor = tensors.at(i).at(1).get<double>();
    tensors_[i].scaling = tensors.at(i).at(2).get<double>();
  }
  for (const auto& [name, values] :
       {std::pair("momentum", &momentum_), std::pair("variance", &variance_),
        std::pair("fresh_variance", &fresh_variance_)}) {
    reader.replicated(name, view_of(std::span<float>(*values)));
  }
  all_reduce_.load(reader);
}

int64_t OneBitLamb::state_bytes() const {
  return static_cast<int64_t>(3 * momentum_.size() * sizeof(float)) + all_reduce_.size_bytes();
}

}  // namespace onebit::deepspeed
