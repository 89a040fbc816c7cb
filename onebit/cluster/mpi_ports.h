// The TCP ports at which the parts of a run listen.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/cluster/start_command.h"

namespace onebit::cluster {

struct PortRange {
  std::string use = {};     // who listens there, for messages
  int first = 0, last = 0;  // 0: any that the kernel gives

  // "40000-40999"; "1024-65535" where the kernel chooses.
  std::string text() const;
  bool operator==(const PortRange&) const = default;
};

// The value of a variable; empty: it is not set.
using Variable = std::function<std::string(const std::string& name)>;

// The ranges of what `starter` starts, as its variables set them (docs/cluster.md, "Interfaces and
// firewalls"): first that of the ranks' values, which all hosts need from all others, then that of
// the starter's own messages, if it has any. Error: a variable that is no range.
std::vector<PortRange> mpi_ports(Starter starter, const Variable& variable);

}  // namespace onebit::cluster
