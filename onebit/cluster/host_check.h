// What hosts report about themselves (`onebit doctor --json`), compared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/cluster/agent.h"
#include "onebit/cluster/host_facts.h"
#include "onebit/cluster/host_list.h"
#include "onebit/cluster/problems.h"

namespace onebit::cluster {

struct CheckedHost {
  std::string name;
  std::optional<HostFacts> facts;
  std::string failure;       // why there are none
  double clock_seconds = 0;  // ahead of this machine's clock
  double clock_error = 0;    // half of the time that the answer took: what is not known of it
};

// Asks all hosts at once. `command` prints the facts as JSON.
std::vector<CheckedHost> check_hosts(const Agent& agent, const std::vector<std::string>& hosts,
                                     const Words& command, const std::string& folder,
                                     double limit_seconds,
                                     const std::function<bool()>& interrupted);

struct CheckFindings {
  Problems wrong;  // training would fail, or hosts would compute something else
  Problems notes;  // it works, but is slow or strange
};

// What a run asks of its hosts beside being alike.
struct Needs {
  int64_t bytes_a_rank = 0;      // of memory; 0: not known
  int64_t checkpoint_bytes = 0;  // on the disk of the run's folder, at the least; 0: not known
  int threads = 0;               // of a rank; 0: what the host has
  bool binds = false;            // each thread to a core of its own
};

// What the hosts' programs and inputs must be, where that does not follow from the hosts alone.
struct Expected {
  HostFacts facts;     // an input that is missing, or has an error or no checksum: as most hosts
  std::string where;   // has them: "on this machine"
  std::string remedy;  // for inputs that are not so: "copy it from there"
};

// Compares every host with what is expected, or with what most hosts have (the first of those that
// answered, where as many have the one as the other): versions, inputs; then clocks, processors,
// and what it has with what its ranks need. `hosts` gives the ranks.
CheckFindings compare_hosts(const std::vector<CheckedHost>& checked, const Hosts& hosts,
                            const Needs& needs,
                            const std::optional<Expected>& expected = std::nullopt);

// Hosts that answered, have the networks that were asked for, and have the program and the MPI that
// are expected, or that most have.
std::vector<std::string> alike_hosts(const std::vector<CheckedHost>& checked,
                                     const std::optional<Expected>& expected = std::nullopt);

// A row a host.
std::string host_table(const std::vector<CheckedHost>& checked);

// Physical cores that the host's ranks may use; 0 where it did not say.
int usable_cores(const CheckedHost& host);

}  // namespace onebit::cluster
