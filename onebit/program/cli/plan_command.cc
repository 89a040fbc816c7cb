// onebit plan: what a recipe will take on a planned cluster, which need not exist.
#include <fmt/format.h>

#include <memory>

#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cli/model_sizes.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/program/plan/plan_output.h"
#include "onebit/program/plan/quantity.h"
#include "onebit/program/plan/run_plan.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::cli {
namespace {

constexpr int kMaxHosts = 65536;

struct Arguments {
  std::string recipe, start, bandwidth, latency = "50us", measured, svg;
  std::vector<std::string> overrides;
  int hosts = 1, ranks_per_host = 1, threads = 0;
  double watts = 350;
  bool json = false;
};

plan::PlannedCluster cluster_of(const Arguments& given) {
  const auto bandwidth = plan::parse_bandwidth(given.bandwidth);
  if (!bandwidth) {
    throw commands::UsageError(fmt::format("--bandwidth: \"{}\" is not a bandwidth: give {}",
                                           given.bandwidth, plan::kBandwidthForm));
  }
  const auto latency = plan::parse_latency(given.latency);
  if (!latency) {
    throw commands::UsageError(fmt::format("--latency: \"{}\" is not a latency: give {}",
                                           given.latency, plan::kLatencyForm));
  }
  if (int64_t{given.hosts} * given.ranks_per_host > kMaxHosts) {
    throw commands::UsageError(
        fmt::format("--hosts {} with --ranks-per-host {}: a plan has at most {} ranks", given.hosts,
                    given.ranks_per_host, kMaxHosts));
  }
  return {.hosts = given.hosts,
          .ranks_per_host = given.ranks_per_host,
          .host_parts = given.ranks_per_host,
          .bandwidth = *bandwidth,
          .latency = *latency};
}

pretrain::PretrainingConfig config_of(const Arguments& given) {
  if (!given.start.empty() && !training::model_folder_in(given.start)) {
    fail("{}: --initialize-from: no model found; give a model folder, a run or a checkpoint",
         given.start);
  }
  Recipe recipe = load_recipe(given.recipe, given.overrides);
  recipe.values = with_sizes_of_model(std::move(recipe.values), given.start);
  const inspect::TaskKind& task = inspect::task_of(recipe);
  require(std::string_view(task.name) == pretrain::kPretrainingTask,
          "{}: is a recipe of the task {}, but only pre-training can be planned; for the duration "
          "of other runs see the table at the start of `{}`",
          given.recipe, task.name, training::training_command(task.name));
  return pretrain::parse_pretraining_recipe(recipe, std::nullopt);
}

costs::MachineCosts machine_of(const Arguments& given, Context& context) {
  if (!given.measured.empty()) return costs::read_machine_costs(given.measured);
  log_info(
      "measuring this machine for some seconds, as each host of the plan; --measured takes what "
      "`onebit doctor --output FILE` wrote on another");
  return costs::measure_machine_costs(context);
}

void warn_of_levels(const pretrain::PretrainingConfig& config, const Arguments& given) {
  if (config.engine.run.levels == engine::LevelsWanted::kOne || given.hosts == 1 ||
      given.ranks_per_host == 1) {
    return;
  }
  log_warning(
      "{}: run.levels asks for two levels, but the plan's figures are for one: on two, the ranks "
      "of "
      "a host send 1/{} of these bytes to other hosts, and divide the optimizer's state",
      given.recipe, given.ranks_per_host);
}

int run(const Arguments& given) {
  const plan::PlanRequest request{.cluster = cluster_of(given), .watts_per_host = given.watts};
  const pretrain::PretrainingConfig config = config_of(given);
  warn_of_levels(config, given);
  commands::require_separate_outputs({given.svg}, {given.recipe, given.measured}, given.start);
  commands::require_writable_file(given.svg);
  engine::solve_batch_sizes(config.engine.batch, request.cluster.ranks(), given.recipe);
  Context context = Context::cpu(given.threads > 0 ? given.threads : available_threads());
  const costs::MachineCosts machine = machine_of(given, context);
  const plan::RunPlan made = plan::make_plan(context, config, machine, request);
  if (given.json) {
    fmt::print("{}\n", json_text(plan::to_json(made), 2));
  } else {
    const std::string measured = given.measured.empty() ? "measured now" : "from " + given.measured;
    fmt::print("{}", plan::plan_text(made, measured));
  }
  // The plan has been shown, even if writing the picture fails.
  if (!given.svg.empty()) write_file_atomically(given.svg, plan::plan_picture(made));
  return commands::kSuccess;
}

}  // namespace

void add_plan(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "plan",
      "Estimate the cost of a pre-training recipe on a planned cluster: memory, the parts of a "
      "step, time and energy to the end, for every way to exchange gradients and 1 to 1,024 ranks");
  command.add_option("--recipe,-r", given->recipe, "Recipe (JSON)").required();
  commands::add_set_option(command, given->overrides);
  command.add_option("--initialize-from", given->start,
                     "Model that the run starts from: gives the sizes if the recipe has none");
  command.add_option("--hosts", given->hosts, "Machines, all alike")
      .check(commands::whole_between(1, kMaxHosts))
      .capture_default_str();
  command.add_option("--ranks-per-host", given->ranks_per_host, "Ranks that share each machine")
      .check(commands::whole_between(1, commands::kMaxThreads))
      .capture_default_str();
  command
      .add_option("--bandwidth", given->bandwidth,
                  "Bandwidth of a machine's link, in each direction: 10Gb/s, 100Mb/s, 1.2GB/s")
      .required();
  command
      .add_option("--latency", given->latency,
                  "Latency of a small message between two machines: 50us, 1ms")
      .capture_default_str();
  command.add_option("--measured", given->measured,
                     "File that `onebit doctor --output FILE` wrote on such a machine. Without it, "
                     "this machine is measured for some seconds");
  command.add_option("--watts", given->watts, "Power of a machine under load, for the energy")
      .check(commands::between(0.0, 1e6))
      .capture_default_str();
  command
      .add_option("--threads", given->threads,
                  "Threads to measure with, where 0 is all processors this process may use")
      .check(commands::whole_between(0, commands::kMaxThreads))
      .capture_default_str();
  command.add_flag("--json", given->json, "Print the plan as JSON (docs/plan.md has its keys)");
  command.add_option("--svg", given->svg, "Also draw samples per second by ranks into a file");
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
