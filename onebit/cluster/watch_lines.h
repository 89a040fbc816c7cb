// What the launcher (host_link.h) and its watch on a host (host_watch.h) write to each other, line
// by line. What a shell's start-up files may print before is none of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onebit::cluster {

// Either side writes at least so often, so that silence shows that the other is gone.
inline constexpr double kBeatSeconds = 1;

// Of the launcher.
enum class WatchRequest {
  kBeat,  // it is there
  kLook,  // wants the states of the ranks on the host
  kEnd,   // wants the attempt's processes to be ended, and the watch
};

// Of the watch.
struct WatchReply {
  enum class Kind {
    kBeat,    // it is there
    kReady,   // the host is prepared
    kRank,    // the state of `rank`; after a kLook one for each
    kLooked,  // there are no more
    kEnded,   // the attempt's processes are gone, of which `ended_ranks` had to be ended
  };

  Kind kind = Kind::kBeat;
  int rank = 0;
  char state = 0;  // as in /proc/PID/stat
  int ended_ranks = 0;
};

// "look", "rank 3 T": without the end of the line. The reverse gives nothing for another line.
std::string line_of(WatchRequest request);
std::string line_of(const WatchReply& reply);
std::optional<WatchRequest> parse_watch_request(std::string_view line);
std::optional<WatchReply> parse_watch_reply(std::string_view line);

}  // namespace onebit::cluster
