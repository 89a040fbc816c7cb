// onebit launch: runs a training command on the ranks of several hosts, and restarts it when it
// fails.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/cli/collect_host_facts.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cli/host_options.h"
#include "onebit/program/cli/training_words.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/starter_choice.h"
#include "onebit/program/launch/exported_variables.h"
#include "onebit/program/launch/launcher.h"
#include "onebit/program/plan/quantity.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/key_options.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/training/session_config.h"

extern char** environ;

namespace onebit::cli {
namespace {

using cluster::Starter;
using Bind = launch::LaunchOptions::Bind;

constexpr FileKind kVariables = {"a file of variables", uint64_t{16} << 20};

struct Arguments {
  HostOptions hosts;
  std::string starter = "auto", interface, bind = "auto", env_file;
  std::string pause = "1s", hang_timeout, phase_timeout = "10m", host_timeout = "10s",
              host_wait = "5m", end_timeout = "10m";
  std::vector<std::string> exports, command;
  int threads = 0, min_hosts = 0, max_restarts = 3;
  commands::Overrides overrides;  // of run.checkpoint_copies
  bool no_checks = false, dry_run = false;
};

commands::Check is_duration() {
  return {[](const std::string& text) -> std::string {
            if (plan::parse_duration(text)) return "";
            return fmt::format("must be a duration such as 90s, 10m or 2h, got {}", text);
          },
          "DURATION"};
}

double seconds(const std::string& text) {
  return plan::parse_duration(text).value();
}

// What a starter prints about its version: on either stream, since a wrong program complains.
std::string words_about(const std::string& program) {
  constexpr double kSeconds = 20;
  const auto replies = cluster::ask_all(
      cluster::default_agent(false), {cluster::kThisMachine}, {program, "--version"},
      std::filesystem::current_path().string(), kSeconds, [] { return false; });
  return replies[0].output + replies[0].error;
}

cluster::ChosenStarter starter_of(const std::string& name, const ChosenHosts& chosen,
                                  const cluster::Agent& agent, const std::string& program) {
  const int ranks = cluster::count_ranks(chosen.hosts);
  const bool alone = ranks == 1 && cluster::runs_here(agent, chosen.hosts.front().name);
  if (name == "auto" && alone) return {.starter = Starter::kAlone};
  if (name == "tcp" || (name == "auto" && !transport::mpi_is_there())) {
    return {.starter = Starter::kTcp, .program = program};
  }
  require(transport::mpi_is_there(), "onebit launch starts {} by MPI, but {}",
          counted(ranks, "rank"), transport::mpi_problem());
  return cluster::choose_starter(
      {.asked = name,
       .mpi = transport::mpi_version(),
       .in_slurm = chosen.in_slurm,
       .is_there = [](const std::string& one) { return path_of_program(one).has_value(); },
       .says = words_about});
}

void set_variables(const Arguments& given, launch::LaunchOptions& options) {
  cluster::Problems problems;
  std::vector<std::string> names;
  if (!given.env_file.empty()) {
    options.variables = launch::parse_variables(read_given_file(given.env_file, kVariables),
                                                given.env_file, problems);
  }
  std::vector<std::string> all = options.variables;
  for (const std::string& variable : options.variables) {
    names.push_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& text : given.exports) {
    names.push_back(text.substr(0, text.find('=')));
    if (text.find('=') == std::string::npos) continue;
    options.variables.push_back(text);
    all.push_back(text);
  }
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  options.exports = launch::exported_names(all, names, problems);
  cluster::require_none(problems, "these variables cannot be exported, and nothing was started:");
}

launch::LaunchOptions launch_options(const Arguments& given, const ChosenHosts& chosen,
                                     const launch::TrainingCommand& training) {
  const cluster::Agent agent = agent_of(given.hosts, chosen.in_slurm);
  launch::LaunchOptions options = {
      .hosts = chosen.hosts,
      .agent = agent,
      .starter = starter_of(given.starter, chosen, agent, program_of(given.hosts)),
      .program = program_of(given.hosts),
      .folder = std::filesystem::current_path().string(),
      .threads = given.threads > 0 ? given.threads : chosen.threads,
      .bind = given.bind == "core"   ? Bind::kCore
              : given.bind == "none" ? Bind::kNone
                                     : Bind::kAuto,
      .interface = given.interface};
  require(
      options.starter.starter != Starter::kTcp || options.bind != Bind::kCore,
      "--bind core: without MPI ranks are not bound to cores: leave it out, or start them by MPI");
  options.own = find_host_facts({.inputs = training.inputs});
  set_variables(given, options);
  options.checks = !given.no_checks;
  options.in_slurm = chosen.in_slurm;
  options.as_root = ::geteuid() == 0;
  options.min_hosts = given.min_hosts;
  options.max_restarts = given.max_restarts;
  options.pause_seconds = seconds(given.pause);
  options.host_seconds = seconds(given.host_timeout);
  options.wait_seconds = seconds(given.host_wait);
  options.end_seconds = seconds(given.end_timeout);
  options.limits.phase_seconds = seconds(given.phase_timeout);
  if (!given.hang_timeout.empty()) options.limits.hang_seconds = seconds(given.hang_timeout);
  return options;
}

// The training command with the options that the launcher passes on to it.
std::vector<std::string> words_of(const Arguments& given) {
  std::vector<std::string> words = given.command;
  for (const std::string& change : given.overrides.options) {
    words.insert(words.end(), {commands::kCheckpointCopies, change.substr(change.find('=') + 1)});
  }
  return words;
}

std::string count_of(const cluster::Hosts& hosts) {
  return hosts.size() == 1 ? "is one host" : fmt::format("are {} hosts", hosts.size());
}

int run(const Arguments& given) {
  const transport::Launch around = transport::detect_launch();
  require(around.world_size == 1,
          "onebit launch starts all ranks itself, and {} has started it {} times: start it once, "
          "without {}",
          around.starter, around.world_size, around.starter);
  const ChosenHosts chosen = choose_hosts(given.hosts);
  const int ranks = cluster::count_ranks(chosen.hosts);
  require(given.min_hosts <= static_cast<int>(chosen.hosts.size()), "--min-hosts {}: there {}",
          given.min_hosts, count_of(chosen.hosts));
  const launch::TrainingCommand training = read_training(words_of(given), ranks);
  require(training.checkpoint_copies <= static_cast<int64_t>(chosen.hosts.size()),
          "{} {}: there {}: a host keeps each part of a checkpoint only once",
          commands::kCheckpointCopies, training.checkpoint_copies, count_of(chosen.hosts));
  const launch::LaunchOptions options = launch_options(given, chosen, training);
  log_info("{} on {} ({}), started {}", counted(ranks, "rank"),
           counted(static_cast<int64_t>(chosen.hosts.size()), "host"), chosen.origin,
           options.starter.starter == Starter::kAlone
               ? "without MPI"
               : fmt::format("by {}", cluster::name_of(options.starter.starter)));
  return given.dry_run ? launch::show_launch(options, training) : launch::launch(options, training);
}

void add_starting(commands::Command command, Arguments& given) {
  add_host_options(command, given.hosts, "the hosts of a Slurm or PBS job, otherwise this machine");
  command
      .add_option(
          "--ranks-per-host", given.hosts.ranks_per_host,
          "Ranks on every host (default: its slots, or on this machine alone its memory nodes)")
      .check(commands::at_least(1));
  command
      .add_option(
          "--with", given.starter,
          "What starts the ranks: openmpi, mpich, srun, tcp (onebit itself, without MPI), or "
          "auto (the program that belongs to onebit's MPI, and tcp without one)")
      .check(commands::one_of({"auto", "openmpi", "mpich", "srun", "tcp"}))
      .capture_default_str();
  command
      .add_option("--threads", given.threads,
                  "Threads of each rank, where 0 shares the cores of a host among its ranks")
      .check(commands::whole_between(0, commands::kMaxThreads))
      .capture_default_str();
  command
      .add_option(
          "--bind", given.bind,
          "core gives each rank cores of its own, none does not, auto does if there are enough")
      .check(commands::one_of({"auto", "core", "none"}))
      .capture_default_str();
  command.add_option("--interface", given.interface,
                     "Network between the hosts: an interface (eth1) or a subnet (10.0.0.0/24)");
  command
      .add_option(
          "--export", given.exports,
          "Environment variable to set for the ranks, NAME or NAME=VALUE (repeatable). Settings of "
          "onebit, OpenMP, oneDNN, NCCL and CUDA are always passed on, secrets never")
      .allow_extra_args(false);
  command.add_option("--env-file", given.env_file,
                     "File of such variables, one NAME=VALUE per line");
  command.add_flag("--no-checks", given.no_checks, "Start without checking the hosts");
  command.add_flag("--dry-run", given.dry_run,
                   "Check the hosts and print the command that would start the ranks, each option "
                   "with its reason, but start nothing");
}

void add_restarting(commands::Command command, Arguments& given) {
  const auto add_duration = [&](const char* name, std::string& value, const char* meaning) {
    const commands::Option option = command.add_option(name, value, meaning).check(is_duration());
    if (!value.empty()) option.capture_default_str();
  };
  command
      .add_option("--max-restarts", given.max_restarts,
                  "Restarts in a row without a new checkpoint between them, where 0 is never")
      .check(commands::at_least(0))
      .capture_default_str();
  command
      .add_option("--min-hosts", given.min_hosts,
                  "Continue with this many hosts when others do not answer, with the same batch "
                  "size (default: all)")
      .check(commands::at_least(1));
  const auto read = [](Keys& recipe) { training::read_session_config(recipe); };
  const commands::KeyOptions keys(command, read, given.overrides);
  keys.add(commands::kCheckpointCopies, "run.checkpoint_copies");
  add_duration("--restart-pause", given.pause,
               "Pause before the first restart. Later ones are longer");
  add_duration("--hang-timeout", given.hang_timeout,
               "Time without a step after which the run counts as hanging (default: ten median "
               "steps, at least a minute)");
  add_duration("--phase-timeout", given.phase_timeout,
               "Limit for phases without steps: start, an evaluation, the last checkpoint");
  add_duration("--host-timeout", given.host_timeout,
               "Time without a reply after which a host counts as lost");
  add_duration("--host-wait", given.host_wait,
               "Time before a restart for enough hosts to answer again");
  add_duration("--end-timeout", given.end_timeout,
               "Time for the checkpoint after SIGTERM, SIGUSR1 or Ctrl-C. A second signal ends the "
               "run at once");
}

}  // namespace

void add_launch(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "launch",
      fmt::format(
          "Start a training command on many hosts, and restart it from its last checkpoint when it "
          "fails: onebit launch --hostfile hosts -- pretrain --recipe ... (docs/cluster.md). Ends "
          "with {} when the run is finished, {} when it was asked to end and can continue, {} when "
          "it failed",
          launch::kFinished, launch::kAskedToEnd, launch::kGaveUp));
  add_starting(command, *given);
  add_restarting(command, *given);
  command
      .add_option("command", given->command,
                  "After --: " + training_commands() + ", and their options")
      .required();
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
