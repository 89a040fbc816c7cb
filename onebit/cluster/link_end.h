// What looks at the network of a host for the launcher (link_check.h): it listens where ranks
// would, and tries to reach the other hosts.
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/mpi_ports.h"

namespace onebit::cluster {

struct LinkEndOptions {
  std::string interface = {};  // as network_addresses() takes it
  std::vector<PortRange> ranges = {};
};

// Speaks link_lines.h over standard input and output until the launcher closes the former. Returns
// the exit status.
int serve_link_end(const LinkEndOptions& options);

}  // namespace onebit::cluster
