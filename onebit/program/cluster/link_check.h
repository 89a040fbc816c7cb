// Checks whether hosts reach each other at the ports of a run, and how fast their links are.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/mpi_ports.h"
#include "onebit/program/cluster/problems.h"

namespace onebit::cluster {

// Pairs of hosts in rounds, as in a tournament: a host has one partner at a time.

// Every pair of numbers below `count` once.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int count);

struct LinkCheckRequest {
  Agent agent;
  std::vector<std::string> hosts;  // that answer and have the same program
  std::string program, folder;     // as the launcher uses them
  std::string interface;           // value of --interface
  std::vector<PortRange> ranges;   // the first between all hosts, the second also to the launcher
  bool measures = false;
};

// A port of host `to` that host `from` cannot reach.
struct ClosedLink {
  std::string from, to;
  size_t range = 0;
  int port = 0;
  std::string reason;
};

struct MeasuredLink {
  std::string from, to;
  double seconds = 0;           // half of a round trip of a small message
  double bytes_per_second = 0;  // of a long message
};

struct LinkFindings {
  std::vector<ClosedLink> closed;
  std::vector<MeasuredLink> measured;
  Problems failed;  // hosts that could not be checked, and why
};

// Starts a link end on every host, and one on this machine if it is none of the hosts, and lets
// each try all others. Open links are measured, each while both of its hosts have no other
// measurement. Stops when `interrupted` returns true.
LinkFindings check_links(const LinkCheckRequest& request, const std::function<bool()>& interrupted);

}  // namespace onebit::cluster
