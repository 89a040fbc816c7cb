#include "bench/study_pretraining.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/training_loop.h"

namespace onebit::bench {
namespace {

Make maker_of(const Replacement& replacement, const Json& recipe, const std::string& place) {
  const Json& optimizer = recipe.at("optimizer");
  const auto type = optimizer.at("type").get<std::string>();
  Keys params(optimizer.at("params"), place, "optimizer.params");
  Make make = replacement.make(type, params);
  require(make != nullptr, "{}: optimizer.type {}: not among those that this program replaces",
          place, type);
  params.check();
  return make;
}

// Forwards to onebit's recipe, except for the optimizer itself.
class ReplacedRecipe final : public optim::OptimizerRecipe {
 public:
  ReplacedRecipe(std::shared_ptr<const optim::OptimizerRecipe> given, std::string describes,
                 Make make)
      : given_(std::move(given)), describes_(std::move(describes)), make_(std::move(make)) {}

  std::string_view title() const override { return given_->title(); }
  double learning_rate() const override { return given_->learning_rate(); }
  std::string describe() const override { return given_->describe() + "; " + describes_; }
  std::unique_ptr<optim::Optimizer> make(const ParameterTable& table,
                                         comm::Communicator& communicator,
                                         const optim::RunFacts& run) const override {
    return make_(*given_, table, communicator, run);
  }
  optim::StateLayout state_layout(const ParameterTable& table,
                                  const optim::StateDivision& division) const override {
    return given_->state_layout(table, division);
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
  std::string describes_;
  Make make_;
};

class StudyTask final : public pretrain::PretrainingTask {
 public:
  StudyTask(const pretrain::PretrainingOptions& options, comm::Communicator& communicator,
            const Replacement& replacement)
      : PretrainingTask(options, communicator), config_(PretrainingTask::config()) {
    require(config_.compute == DType::kF32, "{}: bf16 and fp16: f32 alone is here",
            options.recipe.place);
    config_.optimizer = std::make_shared<ReplacedRecipe>(
        config_.optimizer, replacement.describes,
        maker_of(replacement, options.recipe.values, options.recipe.place));
  }

  const engine::EngineConfig& config() const override { return config_; }

 private:
  engine::EngineConfig config_;
};

struct Arguments {
  std::string recipe, data, valid, output;
  int threads = 1;
};

void train(const Arguments& given, const Replacement& replacement) {
  transport::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    pretrain::PretrainingOptions options;
    options.data = {{given.data, 0.0}};
    options.valid = {{"", given.valid}};
    options.recipe = load_recipe(given.recipe, {});
    options.output = given.output;
    Context context = Context::cpu(given.threads);
    training::check_run_folder(options.output, false);
    StudyTask task(options, communicator, replacement);
    training::run_training(context, task, options, communicator);
  });
}

}  // namespace

int pretrain(int count, char** arguments, const std::string& title, const Replacement& replacement,
             const std::function<void(CLI::App&)>& add_options) {
  CLI::App program(title);
  Arguments given;
  program.require_subcommand(1);
  CLI::App* pretrain = program.add_subcommand("pretrain", "As `onebit pretrain`");
  pretrain->add_option("--recipe", given.recipe)->required();
  pretrain->add_option("--data", given.data)->required();
  pretrain->add_option("--valid", given.valid)->required();
  pretrain->add_option("--output", given.output)->required();
  pretrain->add_option("--threads", given.threads)->check(CLI::Range(1, 1024));
  if (add_options) add_options(*pretrain);
  CLI11_PARSE(program, count, arguments);
  try {
    train(given, replacement);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace onebit::bench
