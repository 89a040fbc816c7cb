#include "onebit/optim/adam_options.h"

#include <cmath>
#include <vector>

namespace onebit::optim {
namespace {

void read_betas(JsonReader& params, AdamOptions& options) {
  const std::vector<double> betas = params.numbers("betas", {options.beta1, options.beta2});
  options.beta1 = betas[0];
  options.beta2 = betas[1];
  for (const double beta : betas) {
    require(beta >= 0 && beta < 1, "{}: {} must be at least 0 and below 1", params.place("betas"),
            beta);
  }
}

}  // namespace

AdamOptions read_moment_options(JsonReader& params) {
  AdamOptions options;
  options.learning_rate = params.number("lr", options.learning_rate);
  read_betas(params, options);
  options.epsilon = params.number("eps", options.epsilon);
  options.weight_decay = params.number("weight_decay", options.weight_decay);
  options.bias_correction = params.boolean("bias_correction", options.bias_correction);
  require(options.learning_rate >= 0 && std::isfinite(options.learning_rate),
          "{} is {}; a rate is not negative", params.place("lr"), options.learning_rate);
  require(options.epsilon >= 0, "{} is {}; it is not negative", params.place("eps"),
          options.epsilon);
  require(options.weight_decay >= 0, "{} is {}; it is not negative", params.place("weight_decay"),
          options.weight_decay);
  require(!params.boolean("amsgrad", false), "{}: AMSGrad is not supported; remove it",
          params.place("amsgrad"));
  require(params.number("max_grad_norm", 0) == 0,
          "{}: set the top-level key gradient_clipping instead, which clips on the norm that all "
          "ranks agree on",
          params.place("max_grad_norm"));
  return options;
}

AdamOptions read_adam_options(JsonReader& params) {
  AdamOptions options = read_moment_options(params);
  options.decoupled_decay = params.boolean("adam_w_mode", options.decoupled_decay);
  params.accept("torch_adam");     // which kernel DeepSpeed takes
  params.accept("set_grad_none");  // how PyTorch clears gradients
  return options;
}

std::string describe(const AdamOptions& options) {
  std::string text = fmt::format(
      "lr {:g}, betas {:g} {:g}, eps {:g}, {} {:g}", options.learning_rate, options.beta1,
      options.beta2, options.epsilon,
      options.decoupled_decay ? "decay" : "decay through the gradients", options.weight_decay);
  if (!options.bias_correction) text += ", no bias correction";
  return text;
}

}  // namespace onebit::optim
