// The watch: a process that the launcher keeps on every host during an attempt. It shows that the
// host answers, and ends the attempt's processes there when the launcher requests it or is no
// longer heard. Their protocol: watch_lines.h.
#pragma once

#include <string>

#include "onebit/ground/base/file.h"

namespace onebit::cluster {

struct HostWatchOptions {
  std::string launch_id;
  Path folder;  // temporary files of the attempt; made at the start, removed at the end
  double lease_seconds = 0;  // without a line for so long, the launcher counts as gone
};

// Reads standard input and writes standard output until a WatchRequest::kEnd, the end of the input
// or of the lease. Returns the exit status. Error: the folder cannot be made.
int watch_host(const HostWatchOptions& options);

}  // namespace onebit::cluster
