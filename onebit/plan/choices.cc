#include "onebit/plan/choices.h"

#include <algorithm>

#include "onebit/optim/adam.h"
#include "onebit/optim/optimizer_list.h"

namespace onebit::plan {
namespace {

DType sixteen_bits(const engine::EngineConfig& config) {
  if (size_bytes_of(config.wire) == 2) return config.wire;
  return config.compute == DType::kF16 ? DType::kF16 : DType::kBF16;
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
  for (const auto& other : optim::compressed_recipes(tenth)) {
    const bool of_recipe =
        own.compresses() && own.makes_local_updates() == other->makes_local_updates();
    const auto& optimizer = of_recipe ? config.optimizer : other;
    choices.push_back({.name = std::string(optimizer->title()),
                       .of_recipe = of_recipe,
                       .wire = config.wire,
                       .optimizer = optimizer});
  }
  return choices;
}

}  // namespace onebit::plan
