// What recipes say of Adam, shared by the optimizers that follow it.
#pragma once

#include <string>

#include "onebit/base/json.h"

namespace onebit::optim {

struct AdamOptions {
  double learning_rate = 1e-3;  // base rate of the schedules that scale one
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // adam_w_mode: decay the value; else add decay * value to gradients
  bool bias_correction = true;
};

// Reads the keys of optimizer.params that say how moments are made and what decays. Errors: a value
// out of range, what Adam is not here.
AdamOptions read_moment_options(JsonReader& params);
// The same, and how Adam decays.
AdamOptions read_adam_options(JsonReader& params);

// For the table at the start: "lr 0.001, betas 0.9 0.999, eps 1e-08, decay 0.01".
std::string describe(const AdamOptions& options);

}  // namespace onebit::optim
