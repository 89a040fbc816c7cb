// Compares what hosts report about themselves (`onebit doctor --json`).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_facts.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/cluster/problems.h"

namespace onebit::cluster {

struct CheckedHost {
  std::string name;
  std::optional<HostFacts> facts;
  std::string failure;       // why there are no facts
  double clock_seconds = 0;  // ahead of this machine's clock
  double clock_error = 0;    // half of the reply time: the uncertainty of clock_seconds
};

// Runs `command`, which prints the facts as JSON, on all hosts at once.
std::vector<CheckedHost> check_hosts(const Agent& agent, const std::vector<std::string>& hosts,
                                     const Words& command, const std::string& folder,
                                     double limit_seconds,
                                     const std::function<bool()>& interrupted);

struct CheckFindings {
  Problems wrong;  // training would fail, or hosts would compute something else
  Problems notes;  // it works, but is slow or strange
};

// What a run requires of its hosts besides being alike.
struct Needs {
  int64_t bytes_per_rank = 0;    // memory. 0: unknown
  int64_t checkpoint_bytes = 0;  // minimum disk space in the run's folder. 0: unknown
  int threads = 0;               // per rank. 0: what the host has
  bool binds = false;            // each thread is bound to its own core
};

// The programs and inputs that hosts must have, if this does not follow from the hosts alone.
struct Expected {
  HostFacts facts;     // an input without a usable checksum: expected as on most hosts
  std::string where;   // place that has them: "on this machine"
  std::string remedy;  // for inputs that differ: "copy it from there"
};

// Compares the version and inputs of each host with the expected ones, or with the version and
// inputs of most hosts (in a tie, of the first host that answered). Then it compares clocks,
// processors, and the host's resources with the needs of its ranks. `hosts` gives the ranks.
CheckFindings compare_hosts(const std::vector<CheckedHost>& checked, const Hosts& hosts,
                            const Needs& needs,
                            const std::optional<Expected>& expected = std::nullopt);

// The hosts that answered, have the requested networks, and have the expected version and MPI, or
// the ones of most hosts.
std::vector<std::string> alike_hosts(const std::vector<CheckedHost>& checked,
                                     const std::optional<Expected>& expected = std::nullopt);

// A table with one row per host.
std::string host_table(const std::vector<CheckedHost>& checked);

// Physical cores that the host's ranks may use, or 0 if unknown.
int usable_cores(const CheckedHost& host);

}  // namespace onebit::cluster
