#include "onebit/optim/lamb.h"

#include "onebit/base/clock.h"
#include "onebit/optim/saved_state.h"

namespace onebit::optim {
namespace {

constexpr const char* kStateName = "lamb";

class LambRecipe : public OptimizerRecipe {
 public:
  explicit LambRecipe(const LambOptions& options) : options_(options) {}

  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const params::Table& table, comm::Communicator&,
                                  const RunFacts&) const override {
    return std::make_unique<Lamb>(options_, table);
  }
  std::string describe() const override {
    return fmt::format("{}, trust ratio {:g} to {:g}{}", optim::describe(options_.adam),
                       options_.min_ratio, options_.max_ratio,
                       options_.epsilon_inside_root ? ", eps inside the root" : "");
  }

 private:
  LambOptions options_;
};

// The tensors of files, of which a layer may have fused several into one: the ratios do not depend
// on how a model is computed. What lies between two tensors is zero, has no gradient and adds to no
// norm.
std::vector<ops::LambTensor> tensors_of(const params::Table& table, double weight_decay) {
  std::vector<ops::LambTensor> tensors;
  int64_t block = 0;
  for (const params::Entry& entry : table.entries()) {
    if (!tensors.empty()) {
      tensors.back().end = entry.offset_elements;
      block = tensors.back().end_block();
    }
    tensors.push_back({.begin = entry.offset_elements,
                       .end = table.size_elements(),
                       .first_block = block,
                       .weight_decay = entry.decay ? weight_decay : 0});
  }
  return tensors;
}

}  // namespace

Lamb::Lamb(const LambOptions& options, const params::Table& table)
    : options_(options),
      rule_(options.adam, table),
      moments_(Moments::zeros(table)),
      tensors_(tensors_of(table, options.adam.weight_decay)),
      ratios_(Tensor::zeros(table.device(), DType::kF32, {static_cast<int64_t>(tensors_.size())})) {
}

StepReport Lamb::step(Context& context, params::Table& table, const StepInput& input) {
  const Stopwatch watch;
  rule_.advance(input);
  const bool copies = table.compute_type() != DType::kF32;
  ops::lamb_update(context, {.value = table.values(),
                             .compute_value = copies ? table.compute_values() : View(),
                             .gradient = table.gradients(),
                             .momentum = moments_.momentum.view(),
                             .variance = moments_.variance.view(),
                             .ratio = ratios_.view(),
                             .tensors = tensors_,
                             .learning_rate = input.learning_rate,
                             .gradient_scale = input.gradient_scale,
                             .beta1 = rule_.beta1(input),
                             .beta2 = options_.adam.beta2,
                             .epsilon = options_.adam.epsilon,
                             .epsilon_inside_root = options_.epsilon_inside_root,
                             .momentum_factor = 1 / rule_.momentum_weight(),
                             .variance_factor = 1 / rule_.variance_weight(),
                             .min_ratio = options_.min_ratio,
                             .max_ratio = options_.max_ratio});
  return {.update_seconds = watch.seconds()};
}

void Lamb::save(params::StateWriter& writer) const {
  save_state_name(writer, kStateName);
  rule_.save(writer);
  moments_.save(writer);
}

void Lamb::load(Context&, params::Table&, const params::StateReader& reader) {
  check_state_name(reader, kStateName);
  rule_.load(reader);
  moments_.load(reader);
}

std::vector<float> Lamb::trust_ratios() const {
  const Tensor host = to_cpu_f32(ratios_.view());
  return {host.data<float>(), host.data<float>() + host.shape().elements()};
}

std::shared_ptr<const OptimizerRecipe> lamb_recipe(const LambOptions& options) {
  return std::make_shared<LambRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_lamb(Keys& params) {
  LambOptions options;
  options.adam = read_moment_options(params);
  params.number("min_coeff", options.min_ratio, at_least(0), "smallest trust ratio of a tensor");
  params.number("max_coeff", options.max_ratio, above(0), "largest trust ratio of a tensor");
  params.boolean("eps_inside_sqrt", options.epsilon_inside_root,
                 "add eps to the variance, inside the root");
  params.require(options.min_ratio <= options.max_ratio, "min_coeff",
                 "is {}, above max_coeff, {}: the trust ratio is held between the two; DeepSpeed's "
                 "defaults are 0.01 and 10",
                 options.min_ratio, options.max_ratio);
  params.refused("adam_w_mode",
                 "LAMB's decay is part of the update whose norm it takes, and has one mode");
  return lamb_recipe(options);
}

}  // namespace onebit::optim
