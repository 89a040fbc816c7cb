#include "onebit/optim/moments.h"

#include <cmath>

#include "onebit/optim/own_buffer.h"

namespace onebit::optim {

namespace {

// The ranges of the table with the decay that applies to each.
std::vector<ops::UpdateRange> update_ranges(const params::Table& table, double weight_decay) {
  std::vector<ops::UpdateRange> ranges;
  for (const auto& [range, decay] : table.decay_ranges()) {
    ranges.push_back({range.begin, range.end, decay ? weight_decay : 0});
  }
  return ranges;
}

}  // namespace

Moments::Moments(const params::Table& table, double weight_decay)
    : momentum_(Tensor::zeros(table.device(), DType::kF32, {table.size_elements()})),
      variance_(Tensor::zeros(table.device(), DType::kF32, {table.size_elements()})),
      ranges_(update_ranges(table, weight_decay)) {}

void Moments::step(Context& context, params::Table& table, const OptimizerConfig& config,
                   const StepInput& input) {
  const double beta1 = input.beta1.value_or(config.beta1);
  advance_momentum_weight(beta1);
  advance_variance_weight(config.beta2);
  const bool copies = table.compute_type() != DType::kF32;
  ops::adam_update(context, {.value = table.values(),
                             .compute_value = copies ? table.compute_values() : View(),
                             .gradient = table.gradients(),
                             .momentum = momentum(),
                             .variance = variance(),
                             .ranges = ranges_,
                             .learning_rate = input.learning_rate,
                             .gradient_scale = input.gradient_scale,
                             .beta1 = beta1,
                             .beta2 = config.beta2,
                             .epsilon = config.epsilon,
                             .momentum_factor = 1 / momentum_weight(config),
                             .variance_factor = 1 / variance_weight(config),
                             .decoupled = config.decoupled_decay});
}

double Moments::momentum_weight(const OptimizerConfig& config) const {
  return config.bias_correction && momentum_weight_ > 0 ? momentum_weight_ : 1;
}

double Moments::variance_weight(const OptimizerConfig& config) const {
  return config.bias_correction && variance_weight_ > 0 ? variance_weight_ : 1;
}

void Moments::advance_momentum_weight(double beta1) {
  momentum_weight_ = beta1 * momentum_weight_ + (1 - beta1);
}

void Moments::advance_variance_weight(double beta2) {
  variance_weight_ = beta2 * variance_weight_ + (1 - beta2);
}

double Moments::next_variance_weight(const OptimizerConfig& config) const {
  return config.bias_correction ? config.beta2 * variance_weight_ + (1 - config.beta2) : 1;
}

void Moments::save_weights(params::StateWriter& writer) const {
  writer.scalar("momentum_weight", momentum_weight_);
  writer.scalar("variance_weight", variance_weight_);
}

void Moments::load_weights(const params::StateReader& reader) {
  momentum_weight_ = reader.scalar("momentum_weight").get<double>();
  variance_weight_ = reader.scalar("variance_weight").get<double>();
}

void Moments::save(params::StateWriter& writer) const {
  save_weights(writer);
  writer.replicated("momentum", momentum());
  writer.replicated("variance", variance());
}

void Moments::load(const params::StateReader& reader) {
  load_weights(reader);
  reader.replicated("momentum", momentum());
  reader.replicated("variance", variance());
}

void Moments::save_own_variance(params::StateWriter& writer) const {
  save_weights(writer);
  writer.own("variance", variance());
}

void Moments::load_own_variance(const params::StateReader& reader,
                                comm::Communicator& communicator) {
  load_weights(reader);
  const int64_t elements = variance().elements();
  const bool same_ranks = reader.saved_world_size() == communicator.world_size();
  const std::vector<float> own = same_ranks
                                     ? own_buffer(reader, "variance", communicator.rank(), elements)
                                     : mean_own_buffer(reader, communicator, "variance", elements);
  copy(variance(), ConstView::of(own.data(), {elements}));
}

int64_t Moments::size_bytes() const {
  return momentum().size_bytes() + variance().size_bytes();
}

}  // namespace onebit::optim
