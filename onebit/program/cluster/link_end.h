// The link end: a process that checks the network of a host for the launcher (link_check.h). It
// listens where ranks would, and tries to reach the other hosts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/program/cluster/mpi_ports.h"

namespace onebit::cluster {

// The protocol between the launcher (link_check.h) and the link ends that it starts on hosts: one
// JSON object per line. Other lines, which a shell's start-up files may print before, are ignored.
// An empty line shows a link end that the launcher is still there.

// Where a host listens.
struct LinkPlace {
  std::string token = {};       // its greeting, which distinguishes it from other programs
  std::vector<int> ports = {};  // [ranges]. 0: need not be reachable
  std::vector<std::string> addresses = {};  // IPv4
};

// A request of the launcher.
struct LinkRequest {
  enum class Kind {
    kPeer,     // `peer`, which may be the receiver itself, listens at `place`
    kTry,      // try to reach all other peers
    kMeasure,  // measure the link to `peer`, which has been reached
  };

  Kind kind = Kind::kTry;
  int peer = 0;
  LinkPlace place = {};
};

// A reply of a host.
struct LinkReply {
  enum class Kind {
    kReady,     // the host listens at `place`
    kFailed,    // the host cannot listen, because of `text`
    kClosed,    // `peer` cannot be reached at a port of `range`, because of `text`
    kTrying,    // some more peers have been tried
    kTried,     // all peers have been tried
    kMeasured,  // the link to `peer`. A nonempty `text` is the reason of a failure
  };

  Kind kind = Kind::kTried;
  int peer = 0, range = 0;
  LinkPlace place = {};
  std::string text = {};
  double seconds = 0;           // half of a round trip of a small message
  double bytes_per_second = 0;  // of a long message
};

// Lines do not include the newline. Parsing returns nothing for any other line.
std::string line_of(const LinkRequest& request);
std::string line_of(const LinkReply& reply);
std::optional<LinkRequest> parse_link_request(std::string_view line);
std::optional<LinkReply> parse_link_reply(std::string_view line);

struct LinkEndOptions {
  std::string interface = {};  // as in network_addresses()
  std::vector<PortRange> ranges = {};
};

// Serves this protocol on standard input and output until the launcher closes the input. Returns
// the exit status.
int serve_link_end(const LinkEndOptions& options);

}  // namespace onebit::cluster
