#include "onebit/exchange/optim/adam_options.h"

#include <fmt/format.h>

#include <array>

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

}  // namespace onebit::optim
