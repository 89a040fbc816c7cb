#include "onebit/exchange/optim/lamb.h"

#include <fmt/format.h>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/clock.h"

namespace onebit::optim {
namespace {

// Elements between two tensors are zero, have no gradient and contribute to no norm.
std::vector<updates::LambTensor> tensors_of(const ParameterTable& table) {
  std::vector<updates::LambTensor> tensors;
  int64_t block = 0;
  for (const ParameterEntry& entry : table.entries()) {
    if (!tensors.empty()) {
      tensors.back().end = entry.offset_elements;
      block = tensors.back().end_block();
    }
    tensors.push_back(
        {.begin = entry.offset_elements, .end = table.size_elements(), .first_block = block});
  }
  return tensors;
}

}  // namespace

LambOptions read_lamb_options(Keys& params) {
  LambOptions options;
  options.adam = read_moment_options(params);
  params.number("min_coeff", options.min_ratio, at_least(0), "smallest trust ratio of a tensor");
  params.number("max_coeff", options.max_ratio, above(0), "largest trust ratio of a tensor");
  params.require(options.min_ratio <= options.max_ratio, "min_coeff",
                 "is {}, which is above max_coeff ({}): the trust ratio is clamped between the "
                 "two; DeepSpeed's defaults are 0.01 and 10",
                 options.min_ratio, options.max_ratio);
  params.refused(
      "adam_w_mode",
      "LAMB has only one mode of weight decay, as part of the update whose norm is computed");
  return options;
}

std::string describe(const LambOptions& options) {
  return fmt::format("{}, trust ratio {:g} to {:g}{}", optim::describe(options.adam),
                     options.min_ratio, options.max_ratio,
                     options.epsilon_inside_root ? ", eps inside the root" : "");
}

StateLayout LambRule::layout(const ParameterTable& table) {
  return {{.name = "trust_ratios",
           .extent = Extent::kNumber,
           .numbers = static_cast<int64_t>(table.entries().size())}};
}

LambRule::LambRule(const LambOptions& options, const ParameterTable& table)
    : options_(options),
      tensors_(tensors_of(table)),
      ratios_(Tensor::zeros(table.device(), DType::kF32, {static_cast<int64_t>(tensors_.size())})) {
  for (const ParameterEntry& entry : table.entries()) {
    settings_.push_back({entry.decay, entry.group});
  }
}

std::vector<updates::LambTensor> LambRule::tensors(std::span<const UpdateGroup> groups) const {
  std::vector<updates::LambTensor> tensors = tensors_;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const UpdateGroup settings =
        settings_of(settings_[i].group, groups, options_.adam.weight_decay);
    tensors[i].weight_decay = settings_[i].decay ? settings.weight_decay : 0;
    tensors[i].rate = settings.rate;
  }
  return tensors;
}

void LambRule::step(Context& context, ParameterTable& table, const Moments& moments, AdamRule& rule,
                    const StepInput& input) {
  rule.advance(input);
  const std::vector<updates::LambTensor> with_settings = tensors(input.groups);
  const bool copies = table.compute_type() != DType::kF32;
  updates::lamb_update(context, {.value = table.values(),
                                 .compute_value = copies ? table.compute_values() : View(),
                                 .gradient = table.gradients(),
                                 .momentum = moments.momentum.view(),
                                 .variance = moments.variance.view(),
                                 .ratio = ratios_.view(),
                                 .tensors = with_settings,
                                 .learning_rate = input.learning_rate,
                                 .gradient_scale = input.gradient_scale,
                                 .beta1 = rule.beta1(input),
                                 .beta2 = options_.adam.beta2,
                                 .epsilon = options_.adam.epsilon,
                                 .epsilon_inside_root = options_.epsilon_inside_root,
                                 .momentum_factor = 1 / rule.momentum_weight(),
                                 .variance_factor = 1 / rule.variance_weight(),
                                 .min_ratio = options_.min_ratio,
                                 .max_ratio = options_.max_ratio});
}

std::vector<float> LambRule::trust_ratios() const {
  const Tensor host = to_cpu_f32(ratios_.view());
  return {host.data<float>(), host.data<float>() + host.shape().elements()};
}

namespace {

constexpr const char* kStateName = "lamb";

StateLayout state_of(const ParameterTable& table) {
  StateLayout layout = Moments::layout();
  append(layout, LambRule::layout(table));
  return layout;
}

class LambRecipe : public OptimizerRecipe {
 public:
  explicit LambRecipe(const LambOptions& options) : options_(options) {}

  std::string_view title() const override { return "LAMB"; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable& table, comm::Communicator&,
                                  const RunFacts&) const override {
    return std::make_unique<Lamb>(options_, table);
  }
  StateLayout state_layout(const ParameterTable& table, const StateDivision&) const override {
    return state_of(table);
  }
  std::string describe() const override { return optim::describe(options_); }

 private:
  LambOptions options_;
};

}  // namespace

Lamb::Lamb(const LambOptions& options, const ParameterTable& table)
    : rule_(options.adam, table),
      lamb_(options, table),
      moments_(Moments::zeros(table)),
      sizes_{state_of(table), StateDivision::whole(table.size_elements())} {}

StepReport Lamb::step(Context& context, ParameterTable& table, const StepInput& input) {
  const Stopwatch watch;
  lamb_.step(context, table, moments_, rule_, input);
  return {.update_seconds = watch.seconds()};
}

void Lamb::save(StateWriter& writer) const {
  save_state_name(writer, kStateName);
  rule_.save(writer);
  moments_.save(writer);
}

void Lamb::load(Context&, ParameterTable&, const StateReader& reader) {
  check_state_name(reader, kStateName);
  rule_.load(reader);
  moments_.load(reader);
}

std::shared_ptr<const OptimizerRecipe> lamb_recipe(const LambOptions& options) {
  return std::make_shared<LambRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_lamb(Keys& params) {
  LambOptions options = read_lamb_options(params);
  params.boolean("eps_inside_sqrt", options.epsilon_inside_root,
                 "add eps to the variance, inside the root");
  return lamb_recipe(options);
}

}  // namespace onebit::optim
