// Helpers for the tests of two levels: optimizers, gradients, and ranks on nodes.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/exchange/optim/topology.h"
#include "tests/optim/trial.h"

namespace onebit::optim {

inline constexpr int64_t kFreeze = 8;
// Enough for 1-bit Adam's freeze, several cycles of variance levels, and 0/1 Adam's local updates.
inline constexpr int kSteps = 34;

using Recipe = std::shared_ptr<const OptimizerRecipe>;
using Nodes = std::vector<int>;

inline OneBitAdamOptions onebit_options() {
  return {.adam = {.weight_decay = 0.01}, .freeze = {.step = kFreeze}};
}

inline Recipe onebit_adam() {
  return onebit_adam_recipe(onebit_options());
}

inline Recipe onebit_lamb() {
  return onebit_lamb_recipe(
      {.lamb = {.adam = onebit_options().adam}, .freeze = onebit_options().freeze});
}

inline Recipe zero_one_adam() {
  return zero_one_adam_recipe(
      {.adam = {.weight_decay = 0.01},
       .schedule = {
           .variance_freeze = 12, .variance_scaler = 4, .local_scaler = 6, .local_limit = 4}});
}

inline std::vector<Recipe> variants() {
  OneBitAdamOptions added_decay = onebit_options();
  added_decay.adam.decoupled_decay = false;
  return {onebit_adam(), onebit_adam_recipe(added_decay), onebit_lamb(), zero_one_adam()};
}

// Few bits, so that sums over ranks are exact in any order. Rows of "words" from 20 on get their
// first gradient after the freeze.
inline float coarse_gradient(int rank, int64_t step, int64_t place) {
  const int64_t row = place / 96;
  if (row >= 20 && row < 48 && step < kFreeze + 5) return 0;
  const int64_t kind = place % 5;
  const double noisy =
      noisy_gradient(rank, step, place) * std::pow(10.0, static_cast<double>(kind));
  return static_cast<float>(std::ldexp(std::round(256 * noisy), static_cast<int>(-8 - 3 * kind)));
}

struct Layout {
  int ranks = 1;
  Nodes nodes;  // empty: one level

  TrialOptions options(const Recipe& recipe) const {
    const TrialOptions one{.optimizer = recipe};
    return nodes.empty() ? one : on_two_levels(one, nodes);
  }
  compress::Ownership ownership(int64_t elements) const {
    const RunFacts run = options(nullptr).run;
    const comm::Nodes all = nodes.empty() ? comm::Nodes::one(ranks) : comm::Nodes(nodes);
    return divide_exchange(elements, all, run);
  }
};

struct Saved {
  std::vector<MemoryState> states;
  std::vector<float> values;  // common
};

inline Saved saved_after(int steps, int ranks, const TrialOptions& options) {
  const auto ends = on_ranks(ranks, options, [&](Trial& trial) {
    trial.steps(steps);
    return std::pair(trial.save(), trial.common_values());
  });
  Saved saved{.states = {}, .values = ends[0].second};
  for (const auto& [state, values] : ends) saved.states.push_back(state);
  return saved;
}

}  // namespace onebit::optim
