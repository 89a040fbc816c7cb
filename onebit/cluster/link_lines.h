// What the launcher (link_check.h) and the ends of links that it starts on hosts (link_end.h) write
// to each other: a JSON object a line. What a shell's start-up files may print before is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::cluster {

// Where a host listens.
struct LinkPlace {
  std::string token = {};                   // its greeting, so that it is not taken for another
  std::vector<int> ports = {};              // [ranges]; 0: nobody needs to reach it there
  std::vector<std::string> addresses = {};  // IPv4
};

// Of the launcher.
struct LinkRequest {
  enum class Kind {
    kPeer,     // `peer` listens at `place`
    kTry,      // try to reach all peers
    kMeasure,  // measure the link to `peer`, which was reached
  };

  Kind kind = Kind::kTry;
  int peer = 0;
  LinkPlace place = {};
};

// Of a host.
struct LinkReply {
  enum class Kind {
    kReady,     // it listens at `place`
    kFailed,    // it cannot: `text`
    kClosed,    // no port of `range` of `peer` can be reached: `text` says why
    kTried,     // there are no more
    kMeasured,  // the link to `peer`; `text` says why not, if it is not empty
  };

  Kind kind = Kind::kTried;
  int peer = 0, range = 0;
  LinkPlace place = {};
  std::string text = {};
  double seconds = 0;           // half of a round trip of a small message
  double bytes_per_second = 0;  // of one long message
};

// Without the end of the line. The reverse gives nothing for another line.
std::string line_of(const LinkRequest& request);
std::string line_of(const LinkReply& reply);
std::optional<LinkRequest> parse_link_request(std::string_view line);
std::optional<LinkReply> parse_link_reply(std::string_view line);

}  // namespace onebit::cluster
