#include "onebit/exchange/engine/update_watch.h"

#include <cmath>

#include "onebit/exchange/comm/collectives.h"

namespace onebit::engine {

UpdateWatch::UpdateWatch(const ParameterTable& table, std::string tensors)
    : table_(table), tensors_(std::move(tensors)) {}

void UpdateWatch::before_step() {
  before_ = to_cpu_f32(table_.values());
}

UpdateSummary UpdateWatch::after_step(double learning_rate) {
  const Tensor after = to_cpu_f32(table_.values());
  const float* old_values = before_.data<float>();
  const float* new_values = after.data<float>();
  UpdateSummary summary;
  for (const ParameterEntry& entry : table_.entries()) {
    const bool watched = !tensors_.empty() && entry.name.find(tensors_) != std::string::npos;
    const int64_t end = entry.offset_elements + entry.shape.elements();
    for (int64_t i = entry.offset_elements; i < end; ++i) {
      const double value = new_values[i], change = std::abs(value - old_values[i]);
      if (change > summary.largest_update) {
        summary.largest_update = change;
        summary.updated_tensor = entry.name;
      }
      if (watched && std::abs(value) > summary.largest_value) {
        summary.largest_value = std::abs(value);
        summary.largest_tensor = entry.name;
      }
    }
  }
  summary.largest_update = learning_rate > 0 ? summary.largest_update / learning_rate : 0;
  return summary;
}

namespace {

void read(std::vector<float>& to, const View& from) {
  copy(View::of(to.data(), {static_cast<int64_t>(to.size())}), from);
}

}  // namespace

AdamShadow::AdamShadow(const ParameterTable& table, const optim::AdamOptions& adam, double clipping,
                       comm::Communicator& communicator)
    : table_(table),
      adam_options_(adam),
      clipping_(clipping),
      communicator_(communicator),
      ranges_(table.decay_ranges()) {
  const auto elements = static_cast<size_t>(table.size_elements());
  gradients_.resize(elements);
  values_.resize(elements);
  for (auto* all : {&momentum_, &variance_, &moved_, &adam_}) all->resize(elements);
}

// Calls body(element, weight decay, learning rate) for all elements.
template <class Body>
void AdamShadow::visit(const optim::StepInput& input, const Body& body) const {
  for (const auto& [range, decay, group] : ranges_) {
    const optim::UpdateGroup settings =
        optim::settings_of(group, input.groups, adam_options_.weight_decay);
    const double rate = input.learning_rate * settings.rate;
    for (int64_t i = range.begin; i < range.end; ++i) {
      body(static_cast<size_t>(i), decay ? settings.weight_decay : 0, rate);
    }
  }
}

void AdamShadow::before_step(bool averaged, const optim::StepInput& input) {
  read(gradients_, table_.gradients());
  read(values_, table_.values());
  double scale = input.gradient_scale;
  if (!averaged) {
    comm::sum_in_chunks(communicator_, gradients_);
    scale /= communicator_.world_size();
  }
  double square = 0;
  for (const float gradient : gradients_) square += double{gradient} * gradient;
  const double norm = scale * std::sqrt(square);
  // On some routes only the optimizer detects that a gradient is not finite: the step is then not
  // made on any rank.
  happens_ = std::isfinite(square);
  if (!happens_) return;
  if (clipping_ > 0 && norm > clipping_) scale *= clipping_ / norm;
  const double beta1 = input.beta1.value_or(adam_options_.beta1), beta2 = adam_options_.beta2;
  momentum_weight_ = beta1 * momentum_weight_ + 1 - beta1;
  variance_weight_ = beta2 * variance_weight_ + 1 - beta2;
  const double cm = adam_options_.bias_correction ? momentum_weight_ : 1;
  const double cv = adam_options_.bias_correction ? variance_weight_ : 1;
  visit(input, [&](size_t i, double decay, double rate) {
    double g = scale * gradients_[i];
    if (!adam_options_.decoupled_decay) g += decay * values_[i];
    momentum_[i] = beta1 * momentum_[i] + (1 - beta1) * g;
    variance_[i] = beta2 * variance_[i] + (1 - beta2) * g * g;
    const double d = std::sqrt(variance_[i] / cv) + adam_options_.epsilon;
    adam_[i] += rate * momentum_[i] / cm / d;
  });
}

void AdamShadow::after_step(const optim::StepInput& input) {
  if (!happens_) return;
  std::vector<float>& after = gradients_;  // reused: this step has read its gradients
  read(after, table_.values());
  visit(input, [&](size_t i, double decay, double rate) {
    const double decayed = adam_options_.decoupled_decay ? decay * values_[i] : 0;
    moved_[i] += double{values_[i]} - after[i] - rate * decayed;
  });
}

AdamComparison AdamShadow::compare() {
  double moved = 0, adam = 0, both = 0;
  for (size_t i = 0; i < moved_.size(); ++i) {
    moved += moved_[i] * moved_[i];
    adam += adam_[i] * adam_[i];
    both += moved_[i] * adam_[i];
    moved_[i] = adam_[i] = 0;
  }
  if (!(adam > 0 && moved > 0)) return {};
  return {.distance = std::sqrt(moved / adam), .cosine = both / std::sqrt(moved * adam)};
}

}  // namespace onebit::engine
