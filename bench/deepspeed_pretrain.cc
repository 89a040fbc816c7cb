// Pre-training as `onebit pretrain` makes it, but with DeepSpeed's arithmetic (tests/deepspeed) in
// the place of onebit's: the recipe asks for OneBitAdam, OneBitLamb or ZeroOneAdam as ever, and the
// optimizer of that name is the one that DeepSpeed computes. For comparisons of quality
// (bench/compression_study.py); in f32, on CPUs, not fast.
//   mpirun -np 2 deepspeed_pretrain pretrain --recipe R --data D --valid V --output O [--threads N]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "onebit/base/json.h"
#include "onebit/base/log.h"
#include "onebit/comm/launch.h"
#include "onebit/engine/recipe.h"
#include "onebit/optim/lamb_rule.h"
#include "onebit/optim/optimizer_recipe.h"
#include "onebit/tasks/pretraining_task.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"
#include "tests/deepspeed/onebit_adam.h"
#include "tests/deepspeed/onebit_lamb.h"
#include "tests/deepspeed/zero_one_adam.h"

namespace {

using namespace onebit;

using Make =
    std::function<std::unique_ptr<optim::Optimizer>(const params::Table&, comm::Communicator&)>;

// What the options have in common with the product's, whose recipe has been read and checked.
constexpr const char* kCheckedBefore = "as the product reads it";

int64_t integer_of(Keys& params, const char* name, int64_t otherwise) {
  params.integer(name, otherwise, at_least(1), kCheckedBefore);
  return otherwise;
}

template <typename Optimizer, typename Options>
Make maker(const Options& options) {
  return [options](const params::Table& table, comm::Communicator& communicator) {
    return std::make_unique<Optimizer>(options, table, communicator);
  };
}

Make onebit_adam(Keys& params) {
  deepspeed::OneBitAdamOptions options;
  options.adam = optim::read_adam_options(params);
  options.freeze_step = integer_of(params, "freeze_step", options.freeze_step);
  return maker<deepspeed::OneBitAdam>(options);
}

Make onebit_lamb(Keys& params) {
  const optim::LambOptions lamb = optim::read_lamb_options(params);
  deepspeed::OneBitLambOptions options;
  options.adam = lamb.adam;
  options.min_ratio = lamb.min_ratio;
  options.max_ratio = lamb.max_ratio;
  options.freeze_step = integer_of(params, "freeze_step", options.freeze_step);
  return maker<deepspeed::OneBitLamb>(options);
}

Make zero_one_adam(Keys& params) {
  deepspeed::ZeroOneAdamOptions options;
  options.adam = optim::read_moment_options(params);
  options.variance_freeze = integer_of(params, "var_freeze_step", options.variance_freeze);
  options.variance_scaler = integer_of(params, "var_update_scaler", options.variance_scaler);
  options.local_scaler = integer_of(params, "local_step_scaler", options.local_scaler);
  options.local_limit = integer_of(params, "local_step_clipper", options.local_limit);
  return maker<deepspeed::ZeroOneAdam>(options);
}

Make maker_of(const Json& recipe, const std::string& place) {
  const Json& optimizer = recipe.at("optimizer");
  const auto type = optimizer.at("type").get<std::string>();
  Keys params(optimizer.at("params"), place, "optimizer.params");
  Make make;
  if (type == "OneBitAdam") make = onebit_adam(params);
  if (type == "OneBitLamb") make = onebit_lamb(params);
  if (type == "ZeroOneAdam") make = zero_one_adam(params);
  require(make != nullptr,
          "{}: optimizer.type {}: only OneBitAdam, OneBitLamb and ZeroOneAdam are here", place,
          type);
  params.check();
  return make;
}

// The product's recipe for everything but the optimizer itself.
class DeepSpeedRecipe final : public optim::OptimizerRecipe {
 public:
  DeepSpeedRecipe(std::shared_ptr<const optim::OptimizerRecipe> given, Make make)
      : given_(std::move(given)), make_(std::move(make)) {}

  std::string_view title() const override { return given_->title(); }
  double learning_rate() const override { return given_->learning_rate(); }
  std::string describe() const override { return given_->describe() + "; DeepSpeed's arithmetic"; }
  std::unique_ptr<optim::Optimizer> make(const params::Table& table,
                                         comm::Communicator& communicator,
                                         const optim::RunFacts&) const override {
    return make_(table, communicator);
  }
  int64_t state_bytes(const params::Table& table, int world_size,
                      const optim::RunFacts& run) const override {
    return given_->state_bytes(table, world_size, run);
  }
  std::optional<int64_t> last_dense_update(const optim::RunFacts& run) const override {
    return given_->last_dense_update(run);
  }
  bool makes_local_updates() const override { return given_->makes_local_updates(); }
  optim::UpdateCounts count_updates(const optim::RunFacts& run, int64_t updates) const override {
    return given_->count_updates(run, updates);
  }

 private:
  std::shared_ptr<const optim::OptimizerRecipe> given_;
  Make make_;
};

class DeepSpeedTask final : public tasks::PretrainingTask {
 public:
  DeepSpeedTask(const tasks::PretrainingOptions& options, comm::Communicator& communicator)
      : PretrainingTask(options, communicator), config_(PretrainingTask::config()) {
    require(config_.compute == DType::kF32, "{}: bf16 and fp16: f32 alone is here",
            options.recipe_place);
    config_.optimizer = std::make_shared<DeepSpeedRecipe>(
        config_.optimizer, maker_of(options.recipe, options.recipe_place));
  }

  const engine::EngineConfig& config() const override { return config_; }

 private:
  engine::EngineConfig config_;
};

struct Arguments {
  std::string recipe, data, valid, output;
  int threads = 1;
};

void train(const Arguments& given) {
  comm::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    tasks::PretrainingOptions options;
    options.data = {{given.data, 0.0}};
    options.valid = {{"", given.valid}};
    options.recipe = engine::load_recipe(given.recipe, {});
    options.recipe_place = given.recipe;
    options.output = given.output;
    Context context = Context::cpu(given.threads);
    training::check_run_folder(options.output, false);
    DeepSpeedTask task(options, communicator);
    training::run_training(context, task, options, communicator);
  });
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App program("Pre-trains with DeepSpeed's arithmetic of the 1-bit optimizers");
  Arguments given;
  program.require_subcommand(1);
  CLI::App* pretrain = program.add_subcommand("pretrain", "As `onebit pretrain`");
  pretrain->add_option("--recipe", given.recipe)->required();
  pretrain->add_option("--data", given.data)->required();
  pretrain->add_option("--valid", given.valid)->required();
  pretrain->add_option("--output", given.output)->required();
  pretrain->add_option("--threads", given.threads)->check(CLI::Range(1, 1024));
  CLI11_PARSE(program, count, arguments);
  try {
    train(given);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
