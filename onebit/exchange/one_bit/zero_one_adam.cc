#include "onebit/exchange/one_bit/zero_one_adam.h"

#include <algorithm>

namespace onebit::optim {
namespace {

// The dense updates at the start of the schedule are the warm-up of 1-bit Adam.
FreezeOptions freeze_of(const ZeroOneOptions& schedule) {
  return {.step = std::min(schedule.variance_scaler, schedule.variance_freeze)};
}

ZeroOneOptions ending_with(const RunFacts& run, ZeroOneOptions schedule) {
  schedule.last_update = run.total_steps;
  return schedule;
}

CompressedOptions compressed(const ZeroOneAdamOptions& options, const RunFacts& run) {
  return {.name = "zero_one_adam",
          .adam = options.adam,
          .freeze = freeze_of(options.schedule),
          .exchange = options.exchange,
          .schedule = ending_with(run, options.schedule)};
}

class ZeroOneAdamRecipe : public OptimizerRecipe {
 public:
  explicit ZeroOneAdamRecipe(const ZeroOneAdamOptions& options) : options_(options) {}

  std::string_view title() const override { return "0/1 Adam"; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable& table, comm::Communicator& communicator,
                                  const RunFacts& run) const override {
    return std::make_unique<CompressedOptimizer>(compressed(options_, run), table, communicator,
                                                 run);
  }
  StateLayout state_layout(const ParameterTable& table,
                           const StateDivision& division) const override {
    return CompressedOptimizer::layout(compressed(options_, {}), table, division);
  }
  bool makes_local_updates() const override { return true; }
  UpdateCounts count_updates(const RunFacts& run, int64_t updates) const override {
    const ZeroOneCounts counts = count_exchanges(ending_with(run, options_.schedule), updates);
    const int64_t dense = updates - counts.one_bit - counts.nothing;
    const int64_t both = counts.dense - dense;
    return {
        .dense = dense, .compressed = counts.one_bit - both, .both = both, .local = counts.nothing};
  }
  std::string describe() const override { return optim::describe(options_.adam); }
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts& run,
                                                        int world_size) const override {
    if (world_size == 1) return {{"updates", "a run on one rank sends nothing"}};
    const ZeroOneCounts counts =
        count_exchanges(ending_with(run, options_.schedule), run.total_steps);
    const int64_t both = counts.dense + counts.one_bit + counts.nothing - run.total_steps;
    return {
        {"updates",
         fmt::format(
             "of {}, {} average gradients, {} exchange one bit per element{}, {} exchange nothing",
             run.total_steps, counts.dense, counts.one_bit,
             both > 0 ? fmt::format(" ({} do both)", both) : "", counts.nothing)}};
  }
  std::string conflict_with(const RunFacts& run) const override {
    const ZeroOneOptions& schedule = options_.schedule;
    const int64_t local = run.total_steps - schedule.variance_freeze;
    if (local <= 0) return {};
    const int64_t interval = longest_interval(schedule, run.total_steps);
    if (interval <= local) return {};
    return fmt::format(
        "makes the interval between synchronizations grow to {} updates, and only {} of the run's "
        "{} come after var_freeze_step ({}): the ranks would not exchange again before the last "
        "one; lower local_step_clipper ({}) or raise local_step_scaler ({})",
        interval, local, run.total_steps, schedule.variance_freeze, schedule.local_limit,
        schedule.local_scaler);
  }
  std::vector<std::string> warnings(const RunFacts& run) const override {
    const ZeroOneOptions& schedule = options_.schedule;
    const int64_t dense = std::min(schedule.variance_scaler, schedule.variance_freeze);
    if (run.total_steps == 0 || dense < run.total_steps) return {};
    return {fmt::format(
        "optimizer.params.var_update_scaler = {} and var_freeze_step = {} average the gradients of "
        "all {} updates: nothing will be compressed; lower one of them",
        schedule.variance_scaler, schedule.variance_freeze, run.total_steps)};
  }
  std::optional<int64_t> last_dense_update(const RunFacts& run) const override {
    return last_warmup_update(freeze_of(options_.schedule), options_.adam.beta2, run);
  }
  // Local updates follow Adam as well, each with a rank's own gradients.
  const AdamOptions* followed_adam() const override { return &options_.adam; }

 private:
  ZeroOneAdamOptions options_;
};

}  // namespace

std::shared_ptr<const OptimizerRecipe> zero_one_adam_recipe(const ZeroOneAdamOptions& options) {
  return std::make_shared<ZeroOneAdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_zero_one_adam(Keys& params) {
  ZeroOneAdamOptions options;
  ZeroOneOptions& schedule = options.schedule;
  options.adam = read_moment_options(params);
  params.integer("var_freeze_step", schedule.variance_freeze, at_least(1),
                 "updates after which gradients are no longer averaged, and local updates begin");
  params.integer("var_update_scaler", schedule.variance_scaler, at_least(1),
                 "averages of gradients after which the interval between them doubles");
  params.integer("local_step_scaler", schedule.local_scaler, at_least(1),
                 "updates after which the interval between synchronizations doubles");
  params.integer("local_step_clipper", schedule.local_limit, at_least(1),
                 "longest interval between synchronizations, in updates");
  options.exchange = read_exchange_options(params, options.adam.beta2);
  return zero_one_adam_recipe(options);
}

}  // namespace onebit::optim
