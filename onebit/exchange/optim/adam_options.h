// The options of Adam in a recipe, shared by the optimizers that are based on it.
#pragma once

#include <string>

#include "onebit/ground/recipe/keys.h"

namespace onebit::optim {

struct AdamOptions {
  double learning_rate = 1e-3;  // base rate of the schedules that scale one
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // adam_w_mode: decay the value; else add decay * value to gradients
  bool bias_correction = true;
};

// Reads the keys of optimizer.params that determine the moments and which values decay.
AdamOptions read_moment_options(Keys& params);
// Reads the same keys, and how Adam decays.
AdamOptions read_adam_options(Keys& params);

// The text for the start table: "lr 0.001, betas 0.9 0.999, eps 1e-08, decay 0.01".
std::string describe(const AdamOptions& options);

}  // namespace onebit::optim
