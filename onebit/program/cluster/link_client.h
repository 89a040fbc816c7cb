// Connects to the servers of other hosts (link_server.h), and measures the links to them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace onebit::cluster {

struct LinkTarget {
  int group = 0;  // addresses of one host form a group, of which one is enough
  std::string address = {};
  int port = 0;
  std::string token = {};  // of the intended server
};

struct LinkTrial {
  bool reached = false;
  std::string failure = {};  // why not. Empty also if another of the group was faster
};

// Connects to all targets, to many at a time, until one of each group has answered or none of them
// has made progress for `limit_seconds`, or five times as long if all have accepted the connection:
// a machine that is busy only takes longer. Calls `progress` every second while some do. Returns
// the trials in the order of the targets.
std::vector<LinkTrial> try_links(
    std::span<const LinkTarget> targets, double limit_seconds,
    const std::function<void()>& progress = [] {});

struct LinkSpeed {
  double seconds = 0;           // half of a round trip of a small message
  double bytes_per_second = 0;  // of a long message
};

// Sends messages of growing length until one takes `enough_seconds`. Error: the connection breaks
// or makes no progress for some seconds.
LinkSpeed measure_link(const LinkTarget& target, double enough_seconds);

}  // namespace onebit::cluster
