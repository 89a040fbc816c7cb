#include "onebit/program/plan/choices.h"

#include <algorithm>

#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/optimizer_list.h"

namespace onebit::plan {
namespace {

DType sixteen_bits(const engine::EngineConfig& config) {
  if (size_bytes_of(config.wire) == 2) return config.wire;
  return config.compute == DType::kF16 ? DType::kF16 : DType::kBF16;
}

// The method with the recipe's name; if there is none (1-bit LAMB), the first that sends as much:
// some methods have updates in which nothing is sent.
template <typename Recipes>
auto most_like(const optim::OptimizerRecipe& own, Recipes& others) {
  const auto named = std::find_if(others.begin(), others.end(),
                                  [&](const auto& other) { return other->title() == own.title(); });
  if (named != others.end()) return named;
  const auto alike = std::find_if(others.begin(), others.end(), [&](const auto& other) {
    return other->makes_local_updates() == own.makes_local_updates();
  });
  ONEBIT_INVARIANT(alike != others.end());
  return alike;
}

}  // namespace

std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run) {
  const optim::OptimizerRecipe& own = *config.optimizer;
  const int64_t tenth = std::max<int64_t>(1, run.total_steps / 10);
  std::vector<Choice> choices;
  for (const DType wire : {DType::kF32, sixteen_bits(config)}) {
    choices.push_back({.name = fmt::format("{} averages", name_of(wire)),
                       .of_recipe = !own.compresses() && wire == config.wire,
                       .wire = wire,
                       .optimizer = own.compresses() ? optim::adam_recipe({}) : config.optimizer});
  }
  std::vector<std::shared_ptr<const optim::OptimizerRecipe>> compressed =
      optim::compressed_recipes(tenth);
  if (own.compresses()) *most_like(own, compressed) = config.optimizer;
  for (const auto& optimizer : compressed) {
    choices.push_back({.name = std::string(optimizer->title()),
                       .of_recipe = optimizer == config.optimizer,
                       .wire = config.wire,
                       .optimizer = optimizer});
  }
  return choices;
}

}  // namespace onebit::plan
