// The TCP ports at which the parts of a run listen.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/program/cluster/starter_choice.h"

namespace onebit::cluster {

struct PortRange {
  std::string use = {};     // who listens there, for error messages
  int first = 0, last = 0;  // 0: chosen by the kernel

  // "40000-40999", or "1024-65535" where the kernel chooses.
  std::string text() const;
  bool operator==(const PortRange&) const = default;
};

// Looks up an environment variable. Empty if it is not set.
using Variable = std::function<std::string(const std::string& name)>;

// The port ranges of a run under `starter`, as its variables set them (docs/cluster.md, "Interfaces
// and firewalls"): first the range of the ranks' values, which must be open between all hosts, then
// the range of the starter's own messages, if it has any. `open_mpi` is the series of Open MPI (4,
// 5), if it is the starter. Error: a malformed range.
std::vector<PortRange> mpi_ports(Starter starter, int open_mpi, const Variable& variable);

}  // namespace onebit::cluster
