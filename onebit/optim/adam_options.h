// What recipes say of Adam, shared by the optimizers that follow it.
#pragma once

#include <string>

#include "onebit/base/keys.h"

namespace onebit::optim {

struct AdamOptions {
  double learning_rate = 1e-3;  // base rate of the schedules that scale one
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // adam_w_mode: decay the value; else add decay * value to gradients
  bool bias_correction = true;
};

// Their keys of optimizer.params: those that say how moments are made and what decays.
AdamOptions read_moment_options(Keys& params);
// The same, and how Adam decays.
AdamOptions read_adam_options(Keys& params);

// For the table at the start: "lr 0.001, betas 0.9 0.999, eps 1e-08, decay 0.01".
std::string describe(const AdamOptions& options);

}  // namespace onebit::optim
