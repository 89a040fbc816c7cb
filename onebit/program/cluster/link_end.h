// The link end: a process that checks the network of a host for the launcher (link_check.h). It
// listens where ranks would, and tries to reach the other hosts.
#pragma once

#include <string>
#include <vector>

#include "onebit/program/cluster/mpi_ports.h"

namespace onebit::cluster {

struct LinkEndOptions {
  std::string interface = {};  // as in network_addresses()
  std::vector<PortRange> ranges = {};
};

// Serves the protocol of link_lines.h on standard input and output until the launcher closes the
// input. Returns the exit status.
int serve_link_end(const LinkEndOptions& options);

}  // namespace onebit::cluster
