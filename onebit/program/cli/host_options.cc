#include "onebit/program/cli/host_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/machine.h"
#include "onebit/program/cluster/allocation.h"
#include "onebit/program/cluster/problems.h"
#include "onebit/training/commands/usage.h"

namespace onebit::cli {
namespace {

// This machine only, by default with one rank per memory node, so that the memory of each rank is
// local.
cluster::Hosts this_machine(int ranks_per_host) {
  const int ranks = ranks_per_host > 0 ? ranks_per_host
                                       : std::max(1, static_cast<int>(read_machine().numa_nodes));
  return {cluster::make_host(cluster::kThisMachine, ranks, "this machine")};
}

cluster::Hosts named_hosts(const HostOptions& options, ChosenHosts& chosen,
                           cluster::Problems& problems) {
  if (!options.hostfile.empty()) {
    chosen.origin = options.hostfile;
    return cluster::parse_hostfile(
        read_given_file(options.hostfile, {"a hostfile", uint64_t{16} << 20}), options.hostfile,
        problems);
  }
  if (!options.hosts.empty()) {
    chosen.origin = "--hosts";
    return cluster::parse_host_option(options.hosts, problems);
  }
  const auto job = cluster::find_allocation([](const char* name) { return std::getenv(name); });
  if (!job) {
    chosen.origin = "this machine";
    return this_machine(options.ranks_per_host);
  }
  chosen.origin = job->system + (job->job.empty() ? "" : " job " + job->job);
  chosen.threads = job->threads;
  return job->hosts;
}

}  // namespace

void add_host_options(commands::Command command, HostOptions& options, const std::string& without) {
  command.add_option(
      "--hostfile,-H", options.hostfile,
      "File of hosts as in DeepSpeed: one line HOST slots=N per host, # begins a comment");
  command.add_option("--hosts", options.hosts,
                     "Hosts and their slots, one rank per slot: a,b:2,c:4. Without --hostfile and "
                     "--hosts: " +
                         without);
  command.add_option("--include,-i", options.include,
                     "Only these hosts and slots of the list, as DeepSpeed writes them: a@b:0,2");
  command.add_option("--exclude,-e", options.exclude,
                     "Without these hosts and slots (after --include)");
  command.add_option(
      "--agent", options.agent,
      "Program that runs commands on a host, called as AGENT HOST COMMAND (default: ssh, "
      "inside a Slurm job srun)");
  command.add_option("--program", options.program,
                     "Path of onebit on the hosts (default: where this one is)");
}

ChosenHosts choose_hosts(const HostOptions& options) {
  if (!options.hostfile.empty() && !options.hosts.empty()) {
    throw commands::UsageError("--hostfile and --hosts: give one of them");
  }
  ChosenHosts chosen;
  chosen.in_slurm = std::getenv("SLURM_JOB_ID") != nullptr;
  cluster::Problems problems;
  const cluster::Hosts listed = named_hosts(options, chosen, problems);
  chosen.hosts = cluster::filtered(listed, options.include, options.exclude, problems);
  cluster::set_ranks(chosen.hosts, options.ranks_per_host, problems);
  cluster::require_none(problems, "the list of hosts is wrong, and nothing was started:");
  return chosen;
}

cluster::Agent agent_of(const HostOptions& options, bool in_slurm) {
  if (options.agent.empty()) return cluster::default_agent(in_slurm);
  const cluster::Words words = cluster::split_words(options.agent, "--agent");
  require(!words.empty(), "--agent: names no program");
  return {.words = words};
}

std::string program_of(const HostOptions& options) {
  if (!options.program.empty()) return options.program;
  // Set by the starter of a bundle, whose programs run under a loader of the bundle.
  if (const char* starter = std::getenv("ONEBIT_PROGRAM")) return starter;
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace onebit::cli
