// The watch: a process that the launcher keeps on every host during an attempt. It shows that the
// host answers, and ends the attempt's processes there when the launcher requests it or is no
// longer heard. Their protocol: watch_lines.h.
#pragma once

#include "onebit/program/cluster/host_command_line.h"

namespace onebit::launch {

// Reads standard input and writes standard output until a WatchRequest::kEnd, the end of the input
// or of the lease. Returns the exit status. Error: the folder cannot be made.
int watch_host(const cluster::HostWatchOptions& options);

}  // namespace onebit::launch
