#include "onebit/exchange/optim/adam.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/json.h"

namespace onebit::optim {

AdamOptions read_moment_options(Keys& params) {
  AdamOptions options;
  params.number("lr", options.learning_rate, at_least(0),
                "base learning rate, used without a schedule and by schedules that scale it");
  std::array<double, 2> betas = {options.beta1, options.beta2};
  params.numbers(
      "betas", betas, at_least(0).below(1),
      "decay rates per update of the running averages of the gradient and of its square");
  options.beta1 = betas[0];
  options.beta2 = betas[1];
  params.number("eps", options.epsilon, at_least(0), "added to the square root of the variance");
  params.number("weight_decay", options.weight_decay, at_least(0),
                "weight decay, which is not applied to biases and layer norms");
  params.boolean("bias_correction", options.bias_correction,
                 "divide the averages by 1 - the products of the betas");
  params.fixed("amsgrad", false, "AMSGrad is not implemented");
  params.fixed("max_grad_norm", 0.0,
               "use the top-level key gradient_clipping, which clips by the norm over all ranks");
  return options;
}

AdamOptions read_adam_options(Keys& params) {
  AdamOptions options = read_moment_options(params);
  params.boolean("adam_w_mode", options.decoupled_decay,
                 "decoupled weight decay. With false, weight_decay * value is added to gradients");
  params.without_effect("torch_adam", "selects a kernel in DeepSpeed, where onebit has only one");
  params.without_effect("set_grad_none",
                        "selects how PyTorch clears gradients, which onebit keeps in one buffer");
  return options;
}

std::string describe(const AdamOptions& options) {
  std::string text =
      fmt::format("lr {:g}, betas {:g} {:g}, eps {:g}, {} {:g}", options.learning_rate,
                  options.beta1, options.beta2, options.epsilon,
                  options.decoupled_decay ? "weight decay" : "weight decay through the gradients",
                  options.weight_decay);
  if (!options.bias_correction) text += ", no bias correction";
  return text;
}

namespace {

// The least limit, as a multiple of the momentum of a constant gradient. After few updates Adam's
// bound is so close to this momentum that the noise of signs would exceed it.
constexpr double kLeastMomentumLimit = 3;

}  // namespace

AdamRule::AdamRule(const AdamOptions& options, const ParameterTable& table)
    : options_(options), ranges_(table.decay_ranges()) {}

void AdamRule::step(Context& context, ParameterTable& table, const Moments& moments,
                    const StepInput& input) {
  advance(input);
  const std::vector<updates::UpdateRange> ranges =
      ranges_in({0, table.size_elements()}, input.groups);
  const bool copies = table.compute_type() != DType::kF32;
  updates::adam_update(context, {.value = table.values(),
                                 .compute_value = copies ? table.compute_values() : View(),
                                 .gradient = table.gradients(),
                                 .momentum = moments.momentum.view(),
                                 .variance = moments.variance.view(),
                                 .ranges = ranges,
                                 .learning_rate = input.learning_rate,
                                 .gradient_scale = input.gradient_scale,
                                 .beta1 = beta1(input),
                                 .beta2 = options_.beta2,
                                 .epsilon = options_.epsilon,
                                 .momentum_factor = 1 / momentum_weight(),
                                 .variance_factor = 1 / variance_weight(),
                                 .decoupled = options_.decoupled_decay});
}

std::vector<updates::UpdateRange> AdamRule::ranges_in(Range part,
                                                      std::span<const UpdateGroup> groups) const {
  std::vector<updates::UpdateRange> inside;
  for (const auto& [range, decay, group] : ranges_) {
    const int64_t begin = std::max(range.begin, part.begin), end = std::min(range.end, part.end);
    if (begin >= end) continue;
    const UpdateGroup settings = settings_of(group, groups, options_.weight_decay);
    inside.push_back(
        {begin - part.begin, end - part.begin, decay ? settings.weight_decay : 0, settings.rate});
  }
  return inside;
}

double AdamRule::momentum_weight() const {
  return options_.bias_correction && momentum_weight_ > 0 ? momentum_weight_ : 1;
}

double AdamRule::variance_weight() const {
  return options_.bias_correction && variance_weight_ > 0 ? variance_weight_ : 1;
}

double AdamRule::next_variance_memory() const {
  const double beta2 = options_.beta2;
  const double next_weight = options_.bias_correction ? beta2 * variance_weight_ + (1 - beta2) : 1;
  return 1 - (1 - beta2) / next_weight;
}

double AdamRule::momentum_limit(const StepInput& input, double variance_memory) const {
  const double most = std::numeric_limits<float>::max();
  const double beta = beta1(input), kept = beta * beta / options_.beta2;
  if (kept >= 1 || variance_memory >= 1) return most;
  const double bound = (1 - beta) / std::sqrt((1 - variance_memory) * (1 - kept));
  const double weight = options_.bias_correction ? beta * momentum_weight_ + (1 - beta) : 1;
  return std::min(std::max(bound, kLeastMomentumLimit * weight), most);
}

void AdamRule::advance(const StepInput& input) {
  momentum_weight_ = beta1(input) * momentum_weight_ + (1 - beta1(input));
  variance_weight_ = options_.beta2 * variance_weight_ + (1 - options_.beta2);
}

void AdamRule::save(StateWriter& writer) const {
  writer.scalar("momentum_weight", momentum_weight_);
  writer.scalar("variance_weight", variance_weight_);
}

void AdamRule::load(const StateReader& reader) {
  momentum_weight_ = reader.scalar("momentum_weight").get<double>();
  variance_weight_ = reader.scalar("variance_weight").get<double>();
}

namespace {

constexpr const char* kStateName = "adam";

class AdamRecipe : public OptimizerRecipe {
 public:
  explicit AdamRecipe(const AdamOptions& options) : options_(options) {}

  std::string_view title() const override { return "Adam"; }
  double learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable& table, comm::Communicator&,
                                  const RunFacts&) const override {
    return std::make_unique<Adam>(options_, table);
  }
  StateLayout state_layout(const ParameterTable&, const StateDivision&) const override {
    return Moments::layout();
  }
  std::string describe() const override { return optim::describe(options_); }
  const AdamOptions* followed_adam() const override { return &options_; }

 private:
  AdamOptions options_;
};

}  // namespace

Adam::Adam(const AdamOptions& options, const ParameterTable& table)
    : rule_(options, table),
      moments_(Moments::zeros(table)),
      sizes_{Moments::layout(), StateDivision::whole(table.size_elements())} {}

StepReport Adam::step(Context& context, ParameterTable& table, const StepInput& input) {
  const Stopwatch watch;
  rule_.step(context, table, moments_, input);
  return {.update_seconds = watch.seconds()};
}

void Adam::save(StateWriter& writer) const {
  save_state_name(writer, kStateName);
  rule_.save(writer);
  moments_.save(writer);
}

void Adam::load(Context&, ParameterTable&, const StateReader& reader) {
  check_state_name(reader, kStateName);
  rule_.load(reader);
  moments_.load(reader);
}

std::shared_ptr<const OptimizerRecipe> adam_recipe(const AdamOptions& options) {
  return std::make_shared<AdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_adam(Keys& params) {
  return adam_recipe(read_adam_options(params));
}

}  // namespace onebit::optim
