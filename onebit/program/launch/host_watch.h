// The watch: a process that the launcher keeps on every host during an attempt. It shows that the
// host answers, and ends the attempt's processes there when the launcher requests it or is silent.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "onebit/program/cluster/host_command_line.h"

namespace onebit::launch {

// The line protocol between the launcher (host_link.h) and its watch on a host. Other lines, which
// a shell's start-up files may print before, are ignored.

// Each side writes at least this often, so that silence means that the other side is gone.
inline constexpr double kBeatSeconds = 1;

// A request of the launcher.
enum class WatchRequest {
  kBeat,  // the launcher is alive
  kLook,  // send the states of the ranks on the host
  kEnd,   // end the attempt's processes and the watch
};

// A reply of the watch.
struct WatchReply {
  enum class Kind {
    kBeat,    // the watch is alive
    kReady,   // the host is prepared
    kRank,    // the state of `rank`. After a kLook, one for each rank
    kLooked,  // all states have been sent
    kEnded,   // the attempt's processes are gone. The watch killed `ended_ranks`
  };

  Kind kind = Kind::kBeat;
  int rank = 0;
  char state = 0;  // as in /proc/PID/stat
  std::set<int> ended_ranks = {};
};

// "look", "rank 3 T", "ended 3 5", "ended none", without the newline. Parsing returns nothing for
// any other line.
std::string line_of(WatchRequest request);
std::string line_of(const WatchReply& reply);
std::optional<WatchRequest> parse_watch_request(std::string_view line);
std::optional<WatchReply> parse_watch_reply(std::string_view line);

// Reads standard input and writes standard output until a WatchRequest::kEnd, the end of the input
// or of the lease. Returns the exit status. Error: the folder cannot be made.
int watch_host(const cluster::HostWatchOptions& options);

}  // namespace onebit::launch
