#include "onebit/exchange/engine/optimizer_list.h"

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/lamb.h"

namespace onebit::engine {
namespace {

using Recipe = std::shared_ptr<const optim::OptimizerRecipe>;

struct OptimizerEntry {
  const char* name;  // the recipe's optimizer.type, case-insensitive
  // Lists the keys of optimizer.params. Others are errors.
  Recipe (*read)(Keys& params);
  // The recipe with defaults, for one optimizer of each method of compression.
  Recipe (*with_averages)(int64_t dense_updates) = nullptr;
};

Recipe onebit_adam_after(int64_t dense_updates) {
  return optim::onebit_adam_recipe({.freeze = {.step = dense_updates}});
}

Recipe zero_one_adam_after(int64_t dense_updates) {
  return optim::zero_one_adam_recipe({.schedule = {.variance_freeze = dense_updates}});
}

constexpr OptimizerEntry kOptimizers[] = {
    {"Adam", optim::read_adam},
    {"AdamW", optim::read_adam},
    {"Lamb", optim::read_lamb},
    {"FusedLamb", optim::read_lamb},
    {"OneBitAdam", optim::read_onebit_adam, onebit_adam_after},
    {"OneBitLamb", optim::read_onebit_lamb},
    {"ZeroOneAdam", optim::read_zero_one_adam, zero_one_adam_after},
};

}  // namespace

Recipe read_optimizer(Keys section, const std::function<void(Keys& params)>& read_more) {
  // The other optimizers of DeepSpeed are requested intentionally: no similar name is suggested.
  Kinds kinds = {.any_case = true,
                 .required = true,
                 .elsewhere = {"Adagrad", "Lion", "MuAdam", "MuAdamW", "MuSGD"},
                 .instead =
                     "use AdamW or Lamb, or OneBitAdam, OneBitLamb or ZeroOneAdam for "
                     "compressed exchange"};
  for (const OptimizerEntry& entry : kOptimizers) kinds.names.emplace_back(entry.name);
  Recipe recipe;
  section.kinds(kinds, "the name of the optimizer, in upper or lower case",
                [&](size_t kind, Keys& params) {
                  recipe = kOptimizers[kind].read(params);
                  if (read_more) read_more(params);
                });
  section.without_effect("legacy_fusion", "selects a kernel in DeepSpeed");
  return recipe;
}

std::vector<Recipe> compressed_recipes(int64_t dense_updates) {
  std::vector<Recipe> recipes;
  for (const OptimizerEntry& entry : kOptimizers) {
    if (entry.with_averages != nullptr) recipes.push_back(entry.with_averages(dense_updates));
  }
  return recipes;
}

}  // namespace onebit::engine
