// The recipe of 1-bit Adam; the update is in compressed_optimizer.cc.
#include "onebit/exchange/optim/onebit_adam.h"

#include "onebit/exchange/optim/compressed_recipe.h"

namespace onebit::optim {
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
