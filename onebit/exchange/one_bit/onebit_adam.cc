// The recipe of 1-bit Adam. The update is in compressed_optimizer.cc.
#include "onebit/exchange/one_bit/onebit_adam.h"

namespace onebit::optim {

std::unique_ptr<Optimizer> CompressedRecipe::make(const ParameterTable& table,
                                                  comm::Communicator& communicator,
                                                  const RunFacts& run) const {
  return std::make_unique<CompressedOptimizer>(options_, table, communicator, run);
}

StateLayout CompressedRecipe::state_layout(const ParameterTable& table,
                                           const StateDivision& division) const {
  return CompressedOptimizer::layout(options_, table, division);
}

std::vector<std::pair<std::string, std::string>> CompressedRecipe::rows(const RunFacts& run,
                                                                        int world_size) const {
  return compressed_phase_rows(options_.freeze, options_.adam.beta2, run, world_size);
}

std::vector<std::string> CompressedRecipe::warnings(const RunFacts& run) const {
  return freeze_warnings(options_.freeze, options_.adam.beta2, run);
}

std::optional<int64_t> CompressedRecipe::last_dense_update(const RunFacts& run) const {
  return last_warmup_update(options_.freeze, options_.adam.beta2, run);
}

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options) {
  return std::make_shared<CompressedRecipe>(
      CompressedTitle{
          .title = "1-bit Adam", .description = describe(options.adam), .follows_adam = true},
      CompressedOptions{.name = "onebit_adam",
                        .adam = options.adam,
                        .freeze = options.freeze,
                        .exchange = options.exchange});
}

std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params) {
  OneBitAdamOptions options;
  options.adam = read_adam_options(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params, options.adam.beta2);
  return onebit_adam_recipe(options);
}

}  // namespace onebit::optim
