// onebit host: the processes that `onebit launch` runs on every host. It is not for users, so
// --help does not list it.
#include <cstdlib>
#include <memory>

#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/link_end.h"
#include "onebit/program/cluster/tcp_start.h"
#include "onebit/program/launch/host_watch.h"
#include "onebit/program/launch/rank_guard.h"
#include "onebit/training/commands/usage.h"

namespace onebit::cli {
namespace {

struct Arguments {
  cluster::HostWatchOptions watch;
  cluster::LinkEndOptions links;
  cluster::TcpStartOptions start;
  bool has_own_agent = false;
  std::string folder;
  std::vector<std::string> ports;
  std::vector<std::string> command;
};

// The N-th number of "0,1,0,2", empty if there are fewer.
std::string slot_of(const std::string& slots, int rank) {
  size_t begin = 0;
  for (int i = 0; i < rank; ++i) {
    begin = slots.find(',', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  return slots.substr(begin, slots.find(',', begin) - begin);
}

int run_rank(const std::vector<std::string>& command) {
  const int rank = transport::detect_launch().rank;
  // Slots that a filter has selected are device numbers, as in DeepSpeed.
  if (const char* slots = std::getenv(launch::kSlotsVariable); slots != nullptr) {
    ::setenv("CUDA_VISIBLE_DEVICES", slot_of(slots, rank).c_str(), 0);
  }
  return launch::run_guarded(command, rank, kEventsVariable);
}

int run_watch(const Arguments& given) {
  cluster::HostWatchOptions options = given.watch;
  options.folder = given.folder;
  return launch::watch_host(options);
}

cluster::PortRange range_of(const std::string& text) {
  const size_t dash = text.find('-');
  const auto first = whole_number<int>(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : whole_number<int>(text.substr(dash + 1));
  if (!first || !last) throw commands::UsageError(text + ": is not a range of ports");
  return {.first = *first, .last = *last};
}

int run_link_end(const Arguments& given) {
  cluster::LinkEndOptions options = given.links;
  for (const std::string& text : given.ports) options.ranges.push_back(range_of(text));
  return cluster::serve_link_end(options);
}

void add_links(commands::Command host, const std::shared_ptr<Arguments>& given,
               commands::Action& chosen) {
  const commands::Command links = host.add_subcommand(
      cluster::kLinksCommand, "Check whether this host and others reach each other");
  links.add_option(cluster::kInterfaceOption, given->links.interface, "Network between the hosts");
  links
      .add_option(cluster::kPortsOption, given->ports,
                  "Listen on a port of FIRST-LAST; 0-0: any port (repeatable)")
      .required()
      .allow_extra_args(false);
  links.callback([given, &chosen] { chosen = [given] { return run_link_end(*given); }; });
}

// The launcher's side and a host's side of a start without MPI.
void add_tcp(commands::Command host, const std::shared_ptr<Arguments>& given,
             commands::Action& chosen) {
  cluster::TcpStartOptions& options = given->start;
  const commands::Command start =
      host.add_subcommand(cluster::kStartCommand, "Start ranks on hosts, without MPI");
  const auto add_words = [&](const char* name, std::vector<std::string>& to, const char* meaning) {
    start.add_option(name, to, meaning).allow_extra_args(false);
  };
  add_words(cluster::kHostOption, options.hosts, "NAME:RANKS (repeatable)");
  add_words(cluster::kAgentOption, options.agent.words, "A word of the agent (repeatable)");
  add_words(cluster::kShellOption, options.agent.shell, "A word of its shell (repeatable)");
  add_words(cluster::kExportOption, options.exports, "Name of a variable (repeatable)");
  start.add_flag(cluster::kOwnAgentOption, given->has_own_agent, "The agent is the user's");
  start.add_option(cluster::kInterfaceOption, options.interface, "Network between the hosts");
  start.add_option(cluster::kFolderOption, options.folder, "Working directory").required();
  start.add_option("command", options.command, "Of a rank, after --").required();
  start.callback([given, &chosen] {
    chosen = [given] {
      given->start.agent.is_default = !given->has_own_agent;
      given->start.program = given->start.command.front();
      return cluster::start_over_tcp(given->start);
    };
  });
  const commands::Command ranks =
      host.add_subcommand(cluster::kRanksCommand, "Run the ranks of this host, without MPI");
  ranks.add_option(cluster::kInterfaceOption, options.interface, "Network between the hosts");
  ranks.add_option("command", given->command, "Of a rank, after --").required();
  ranks.callback([given, &chosen] {
    chosen = [given] { return cluster::run_host_ranks(given->start.interface, given->command); };
  });
}

}  // namespace

void add_host(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command host =
      program.add_subcommand(cluster::kHostCommand, "What onebit launch runs on every host");
  host.hide();
  host.require_subcommand();
  const commands::Command rank =
      host.add_subcommand(cluster::kRankCommand, "Run one rank and report on it");
  rank.add_option("command", given->command, "The rank's program and its arguments, after --")
      .required();
  rank.callback([given, &chosen] { chosen = [given] { return run_rank(given->command); }; });
  const commands::Command watch =
      host.add_subcommand(cluster::kWatchCommand, "Watch the ranks of a launch on this host");
  watch.add_option(cluster::kLaunchOption, given->watch.launch_id, "Id of the launch").required();
  watch.add_option(cluster::kFolderOption, given->folder, "Folder for its temporary files")
      .required();
  watch
      .add_option(cluster::kLeaseOption, given->watch.lease_seconds,
                  "Seconds without the launcher, after which its ranks are ended")
      .required();
  watch.callback([given, &chosen] { chosen = [given] { return run_watch(*given); }; });
  add_links(host, given, chosen);
  add_tcp(host, given, chosen);
}

}  // namespace onebit::cli
