// The recipe of 1-bit Adam; its update is that of compressed_optimizer.cc.
#include "onebit/optim/onebit_adam.h"

namespace onebit::optim {
namespace {

// Keys of other arithmetics than the one that there is.
void refuse_arithmetics(Keys& params) {
  for (const char* key : {"coordinates", "variance", "scale", "parity"}) {
    params.refused(key,
                   "1-bit Adam has one arithmetic since what travels is the gradient "
                   "(docs/compression.md)");
  }
}

CompressedOptions compressed(const OneBitAdamOptions& options) {
  return {.name = "onebit_adam",
          .adam = options.adam,
          .freeze = options.freeze,
          .exchange = options.exchange};
}

class OneBitAdamRecipe : public OptimizerRecipe {
 public:
  explicit OneBitAdamRecipe(const OneBitAdamOptions& options) : options_(options) {}

  std::string_view title() const override { return "1-bit Adam"; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const params::Table& table, comm::Communicator& communicator,
                                  const RunFacts& run) const override {
    return std::make_unique<CompressedOptimizer>(compressed(options_), table, communicator, run);
  }
  int64_t state_bytes(const params::Table& table, int world_size,
                      const RunFacts& run) const override {
    return CompressedOptimizer::state_bytes_of(compressed(options_), table, world_size, run);
  }
  std::string describe() const override { return optim::describe(options_.adam); }
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts& run,
                                                        int world_size) const override {
    return compressed_phase_rows(options_.freeze, options_.adam.beta2, run, world_size);
  }
  std::vector<std::string> warnings(const RunFacts& run) const override {
    return freeze_warnings(options_.freeze, options_.adam.beta2, run);
  }
  std::optional<int64_t> last_dense_update(const RunFacts& run) const override {
    return last_warmup_update(options_.freeze, options_.adam.beta2, run);
  }
  const AdamOptions* followed_adam() const override { return &options_.adam; }

 private:
  OneBitAdamOptions options_;
};

}  // namespace

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options) {
  return std::make_shared<OneBitAdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params) {
  OneBitAdamOptions options;
  options.adam = read_adam_options(params);
  refuse_arithmetics(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params, options.adam.beta2);
  return onebit_adam_recipe(options);
}

}  // namespace onebit::optim
