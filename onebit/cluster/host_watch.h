// What the launcher leaves running on every host during an attempt: it shows that the host answers,
// and it ends the attempt's processes there when the launcher asks for it or is no longer heard.
// What the two write to each other: watch_lines.h.
#pragma once

#include <string>

#include "onebit/base/file.h"

namespace onebit::cluster {

struct HostWatchOptions {
  std::string launch_id;
  Path folder;  // temporary files of the attempt; made at the start, removed at the end
  double lease_seconds = 0;  // without a line from the launcher for so long, it is taken for gone
};

// Reads standard input and writes standard output until a WatchRequest::kEnd, the end of the input
// or of the lease. Returns the exit status. Error: the folder cannot be made.
int watch_host(const HostWatchOptions& options);

}  // namespace onebit::cluster
