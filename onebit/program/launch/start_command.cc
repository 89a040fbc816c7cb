#include "onebit/program/launch/start_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "onebit/ground/base/error.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/launch/rank_guard.h"

namespace onebit::launch {
namespace {

constexpr size_t kMostShown = 80;  // characters of a part beside its reason

std::string with_counts(const cluster::Hosts& hosts) {
  std::vector<std::string> parts;
  for (const cluster::Host& host : hosts)
    parts.push_back(fmt::format("{}:{}", host.name, host.ranks()));
  return fmt::format("{}", fmt::join(parts, ","));
}

// The list of a thousand hosts would push all reasons out of sight.
std::string shortened(const std::string& line) {
  return line.size() <= kMostShown ? line : line.substr(0, kMostShown - 4) + " ...";
}

std::string count_text(int count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string ranks_text(const cluster::Hosts& hosts) {
  return fmt::format("{} on {}", count_text(cluster::count_ranks(hosts), "rank", "ranks"),
                     count_text(static_cast<int>(hosts.size()), "host", "hosts"));
}

bool has_remote_hosts(const StartRequest& request) {
  return std::any_of(request.hosts.begin(), request.hosts.end(), [&](const cluster::Host& host) {
    return !cluster::runs_here(request.agent, host.name);
  });
}

std::string threads_text(const StartRequest& request) {
  return fmt::format("{} of its own for every rank", count_text(request.threads, "core", "cores"));
}

// The names by which a series of Open MPI knows the same things. From 5 on its starter is PRRTE, a
// project of its own, whose settings have an option of their own.
struct OpenMpiWords {
  const char* option;  // that sets a parameter of the starter
  const char *agents, *agent, *agent_starts_all;
  const char* daemon;
  const char *temporary, *shared_memory;
};

constexpr OpenMpiWords kWordsOf4 = {.option = "--mca",
                                    .agents = "rsh",
                                    .agent = "plm_rsh_agent",
                                    .agent_starts_all = "plm_rsh_no_tree_spawn",
                                    .daemon = "orted",
                                    .temporary = "orte_tmpdir_base",
                                    .shared_memory = "btl_vader_backing_directory"};
constexpr OpenMpiWords kWordsOf5 = {.option = "--prtemca",
                                    .agents = "ssh",
                                    .agent = "plm_ssh_agent",
                                    .agent_starts_all = "plm_ssh_no_tree_spawn",
                                    .daemon = "prted",
                                    .temporary = "prte_tmpdir_base",
                                    .shared_memory = "btl_sm_backing_directory"};

class OpenMpi {
 public:
  explicit OpenMpi(const StartRequest& request)
      : request_(request), words_(request.open_mpi >= 5 ? kWordsOf5 : kWordsOf4) {}

  StartCommand command() {
    add({request_.program}, "Open MPI's launcher: the MPI that the program is built with");
    if (request_.as_root) add({"--allow-run-as-root"}, "this user is root, as in containers");
    add({"--host", with_counts(request_.hosts)}, "the hosts, and the ranks on each");
    add({"-np", fmt::format("{}", cluster::count_ranks(request_.hosts))},
        ranks_text(request_.hosts));
    add_binding();
    add_agent();
    add_network();
    add_files();
    for (const std::string& name : request_.exports) {
      add({"-x", name}, "a variable that the ranks get");
    }
    add({"--wdir", request_.folder}, "paths mean the same on every host as here");
    add(request_.command,
        "what every rank runs: the guard, which marks the rank's lines and ends "
        "it with its launcher, and after -- the training command");
    return std::move(parts_);
  }

 private:
  void add(cluster::Words words, std::string why) {
    parts_.push_back({std::move(words), std::move(why)});
  }

  // A parameter of the starter, or of the library in the ranks.
  void set(const char* name, const std::string& value, std::string why) {
    add({words_.option, name, value}, std::move(why));
  }
  void set_library(const char* name, const std::string& value, std::string why) {
    add({"--mca", name, value}, std::move(why));
  }

  void add_binding() {
    if (!request_.bind) {
      add({"--map-by", "slot", "--bind-to", "none"},
          "ranks are numbered host by host and share the host's processors");
      return;
    }
    add({"--map-by", fmt::format("slot:PE={}", request_.threads), "--bind-to", "core"},
        fmt::format("ranks are numbered host by host; {}", threads_text(request_)));
  }

  // Open MPI divides the agent at blanks, and at colons into agents to choose from.
  void require_plain_agent() const {
    for (const std::string& word : request_.agent.words) {
      require(!word.empty() && word.find_first_of(" \t:") == std::string::npos,
              "--agent: Open MPI's mpirun takes no agent with blanks or colons inside a word, but "
              "this has \"{}\"; write a script that runs `{} \"$@\"`, at a path without them, and "
              "name it",
              word, cluster::shell_line(request_.agent.words));
    }
  }

  void add_agent() {
    if (!has_remote_hosts(request_)) return;
    const bool use_slurm = request_.in_slurm && request_.agent.is_default;
    if (use_slurm) return;  // Open MPI then starts its daemons with srun
    require_plain_agent();
    set("plm", words_.agents, "daemons are started by an agent, regardless of the batch system");
    set(words_.agent, fmt::format("{}", fmt::join(request_.agent.words, " ")),
        request_.agent.is_default ? "ssh without prompts" : "from --agent");
    set(words_.agent_starts_all, "1", "hosts need to be reached from here only");
    // Open MPI 5 cuts the value of its --launch-agent off at "=".
    const std::string daemon =
        fmt::format("env {}={} {}", kLaunchVariable, request_.launch_id, words_.daemon);
    const char* why = "daemons are found and ended with their attempt";
    if (request_.open_mpi >= 5) {
      set("prte_launch_agent", daemon, why);
    } else {
      add({"--launch-agent", daemon}, why);
    }
  }

  void add_network() {
    if (!request_.interface.empty()) {
      set_library("btl_tcp_if_include", request_.interface,
                  "data is sent over the network of --interface");
      set("oob_tcp_if_include", request_.interface, "and so are the launcher's own messages");
    }
    if (!has_remote_hosts(request_)) return;
    set("oob_tcp_keepalive_time", "4", "a lost host is detected in about ten seconds");
    set("oob_tcp_keepalive_intvl", "2", "instead of eight minutes");
    set("oob_tcp_keepalive_probes", "3", "(three probes, two seconds apart)");
  }

  void add_files() {
    set(words_.temporary, request_.scratch,
        "temporary files are placed where the launcher removes them");
    set_library(words_.shared_memory, request_.scratch, "shared memory of the ranks too");
    add({"-x", kLaunchVariable}, "by which processes of an attempt are found and ended");
  }

  const StartRequest& request_;
  const OpenMpiWords& words_;
  StartCommand parts_;
};

StartCommand mpich_command(const StartRequest& request) {
  StartCommand parts;
  const auto add = [&](cluster::Words words, std::string why) {
    parts.push_back({std::move(words), std::move(why)});
  };
  std::vector<std::string> names = {kLaunchVariable};
  names.insert(names.end(), request.exports.begin(), request.exports.end());
  add({request.program}, "MPICH's launcher: the MPI that the program is built with");
  add({"-hosts", with_counts(request.hosts)}, "the hosts, and the ranks on each");
  add({"-n", fmt::format("{}", cluster::count_ranks(request.hosts))}, ranks_text(request.hosts));
  if (has_remote_hosts(request) && !(request.in_slurm && request.agent.is_default)) {
    if (request.agent.is_default) {
      add({"-launcher", "ssh"}, "proxies are started by ssh");
    } else {
      require(
          request.agent.words.size() == 1,
          "--agent: MPICH's mpiexec takes an agent without arguments, but this is \"{}\"; write a "
          "script that runs `{} \"$@\"` and name it",
          fmt::join(request.agent.words, " "), fmt::join(request.agent.words, " "));
      // For the launcher ssh, mpiexec would call the agent with ssh's options before the host.
      add({"-launcher", "rsh", "-launcher-exec", request.agent.words[0]},
          "proxies are started by the program of --agent");
    }
  }
  if (request.bind) {
    add({"-bind-to", fmt::format("core:{}", request.threads)}, threads_text(request));
  } else {
    add({"-bind-to", "none"}, "ranks share the host's processors");
  }
  if (!request.interface.empty()) {
    require(request.interface.find_first_of("/,") == std::string::npos,
            "--interface {}: MPICH's mpiexec takes the name of one interface, which is the same on "
            "every host: name it, such as eth1 (`ip address` shows which has this subnet)",
            request.interface);
    add({"-iface", request.interface}, "the network of --interface");
  }
  add({"-genvlist", fmt::format("{}", fmt::join(names, ","))}, "variables that the ranks get");
  add({"-wdir", request.folder}, "paths mean the same on every host as here");
  add(request.command, "what every rank runs: the guard, and after -- the training command");
  return parts;
}

StartCommand srun_command(const StartRequest& request) {
  std::set<int> counts;
  for (const cluster::Host& host : request.hosts) counts.insert(host.ranks());
  require(counts.size() == 1,
          "srun starts the same number of ranks on every host, but these have {}: give "
          "--ranks-per-host, or --with openmpi",
          with_counts(request.hosts));
  StartCommand parts;
  const auto add = [&](cluster::Words words, std::string why) {
    parts.push_back({std::move(words), std::move(why)});
  };
  std::vector<std::string> names = {kLaunchVariable, "PATH"};
  names.insert(names.end(), request.exports.begin(), request.exports.end());
  add({request.program}, "Slurm starts the ranks");
  add({fmt::format("--nodes={}", request.hosts.size()),
       fmt::format("--nodelist={}", fmt::join(cluster::names_of(request.hosts), ","))},
      "the hosts of this attempt");
  add({fmt::format("--ntasks={}", cluster::count_ranks(request.hosts)),
       fmt::format("--ntasks-per-node={}", *counts.begin()), "--distribution=block"},
      fmt::format("{}, numbered host by host", ranks_text(request.hosts)));
  add({"--mpi=pmix"}, "ranks find each other through Slurm (srun --mpi=list shows what it has)");
  if (request.threads > 0) {
    add({fmt::format("--cpus-per-task={}", request.threads),
         fmt::format("--cpu-bind={}", request.bind ? "cores" : "none")},
        request.bind ? threads_text(request) : "ranks share the host's processors");
  }
  add({"--kill-on-bad-exit=1"}, "a failed rank ends the run");
  add({"--overlap"}, "runs next to the watches of the hosts, which are steps of the same job");
  add({fmt::format("--export={}", fmt::join(names, ","))}, "variables that the ranks get");
  add({fmt::format("--chdir={}", request.folder)}, "paths mean the same on every host as here");
  add(request.command, "what every rank runs: the guard, and after -- the training command");
  return parts;
}

StartCommand tcp_command(const StartRequest& request) {
  StartCommand parts;
  const auto add = [&](cluster::Words words, std::string why) {
    parts.push_back({std::move(words), std::move(why)});
  };
  add({request.program, cluster::kHostCommand, cluster::kStartCommand},
      "onebit starts the ranks, without MPI");
  for (const cluster::Host& host : request.hosts) {
    add({fmt::format("{}={}:{}", cluster::kHostOption, host.name, host.ranks())},
        count_text(host.ranks(), "rank", "ranks"));
  }
  if (has_remote_hosts(request)) {
    cluster::Words agent;
    for (const std::string& word : request.agent.words) {
      agent.push_back(fmt::format("{}={}", cluster::kAgentOption, word));
    }
    for (const std::string& word : request.agent.shell) {
      agent.push_back(fmt::format("{}={}", cluster::kShellOption, word));
    }
    add(std::move(agent), request.agent.is_default ? "ssh without prompts" : "from --agent");
    if (!request.agent.is_default) add({cluster::kOwnAgentOption}, "is used for every host");
  }
  if (!request.interface.empty()) {
    add({cluster::kInterfaceOption, request.interface},
        "data is sent over the network of --interface");
  }
  add({cluster::kExportOption, kLaunchVariable},
      "by which processes of an attempt are found and ended, and ranks of other runs refused");
  for (const std::string& name : request.exports) {
    add({cluster::kExportOption, name}, "a variable that the ranks get");
  }
  add({cluster::kFolderOption, request.folder}, "paths mean the same on every host as here");
  cluster::Words command = {"--"};
  command.insert(command.end(), request.command.begin(), request.command.end());
  add(std::move(command), "what every rank runs: the guard, and after -- the training command");
  return parts;
}

}  // namespace

StartCommand start_command(cluster::Starter starter, const StartRequest& request) {
  switch (starter) {
    case cluster::Starter::kAlone:
      return {{request.command,
               "one rank on this machine: the guard, and after -- the training command"}};
    case cluster::Starter::kOpenMpi:
      return OpenMpi(request).command();
    case cluster::Starter::kMpich:
      return mpich_command(request);
    case cluster::Starter::kSrun:
      return srun_command(request);
    case cluster::Starter::kTcp:
      return tcp_command(request);
  }
  return {};
}

cluster::Words words_of(const StartCommand& command) {
  cluster::Words words;
  for (const CommandPart& part : command) {
    words.insert(words.end(), part.words.begin(), part.words.end());
  }
  return words;
}

std::string explained(const StartCommand& command) {
  std::string text;
  metrics::TextTable table;
  for (size_t i = 0; i < command.size(); ++i) {
    const bool last = i + 1 == command.size();
    text += (i == 0 ? "" : "  ") + cluster::shell_line(command[i].words) + (last ? "\n" : " \\\n");
    const cluster::Words& words = command[i].words;
    const std::string shown = last && words.size() > 2
                                  ? cluster::shell_line({words[0], words[1], words[2]}) + " ..."
                                  : shortened(cluster::shell_line(words));
    table.add_row({"#", shown, command[i].why});
  }
  return text + "#\n" + table.text();
}

}  // namespace onebit::launch
