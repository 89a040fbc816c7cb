#include "onebit/plan/choices.h"

#include <algorithm>
#include <cctype>

#include "onebit/base/json.h"
#include "onebit/optim/adam.h"
#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/zero_one_adam.h"

namespace onebit::plan {
namespace {

std::string optimizer_type(const engine::EngineConfig& config) {
  auto type = config.recipe.given().at("optimizer").at("type").get<std::string>();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return type;
}

DType sixteen_bits(const engine::EngineConfig& config) {
  if (size_bytes_of(config.wire) == 2) return config.wire;
  return config.compute == DType::kF16 ? DType::kF16 : DType::kBF16;
}

}  // namespace

std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run) {
  const std::string type = optimizer_type(config);
  const int64_t tenth = std::max<int64_t>(1, run.total_steps / 10);
  const bool compresses = config.optimizer->compresses(), zero_one = type == "zerooneadam";
  std::vector<Choice> choices;
  for (const DType wire : {DType::kF32, sixteen_bits(config)}) {
    choices.push_back({.name = fmt::format("{} averages", name_of(wire)),
                       .of_recipe = !compresses && wire == config.wire,
                       .wire = wire,
                       .optimizer = compresses ? optim::adam_recipe({}) : config.optimizer});
  }
  const bool one_bit = compresses && !zero_one;
  choices.push_back({.name = type == "onebitlamb" ? "1-bit LAMB" : "1-bit Adam",
                     .of_recipe = one_bit,
                     .wire = config.wire,
                     .optimizer = one_bit
                                      ? config.optimizer
                                      : optim::onebit_adam_recipe({.freeze = {.step = tenth}})});
  choices.push_back({.name = "0/1 Adam",
                     .of_recipe = zero_one,
                     .wire = config.wire,
                     .optimizer = zero_one ? config.optimizer
                                           : optim::zero_one_adam_recipe(
                                                 {.schedule = {.variance_freeze = tenth}})});
  return choices;
}

}  // namespace onebit::plan
