// Looks whether hosts reach each other at the ports of a run, and how fast their links are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/cluster/agent.h"
#include "onebit/cluster/mpi_ports.h"
#include "onebit/cluster/problems.h"

namespace onebit::cluster {

struct LinkCheckRequest {
  Agent agent;
  std::vector<std::string> hosts;  // that answer, with the same program
  std::string program, folder;     // as the launcher uses them
  std::string interface;           // of --interface
  std::vector<PortRange> ranges;   // the first from all to all, the second to the launcher as well
  bool measures = false;
};

// A port that one host cannot reach at another.
struct ClosedLink {
  std::string from, to;
  size_t range = 0;
  int port = 0;
  std::string reason;
};

struct MeasuredLink {
  std::string from, to;
  double seconds = 0;           // half of a round trip of a small message
  double bytes_per_second = 0;  // of a long one
};

struct LinkFindings {
  std::vector<ClosedLink> closed;
  std::vector<MeasuredLink> measured;
  Problems failed;  // hosts that could not be looked at, and why
};

// Starts an end of links on every host, and one here where no host is this machine, and lets each
// try all others. Measured are links that are open, each alone on both of its hosts. Until
// `interrupted` returns true.
LinkFindings check_links(const LinkCheckRequest& request, const std::function<bool()>& interrupted);

}  // namespace onebit::cluster
