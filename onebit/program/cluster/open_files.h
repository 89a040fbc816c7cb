// The number of files that this process may have open (ulimit -n).
#pragma once

#include <cstdint>
#include <string>

namespace onebit::cluster {

// Raises the limit to `wanted`, as far as the system allows this user, and returns it. It is never
// raised further: some programs close every file that their limit allows when they start.
int64_t raise_open_files(int64_t wanted);

// The same for a launcher of `hosts` hosts. Error: the system does not allow it enough files.
void raise_open_files_for(int64_t hosts);

}  // namespace onebit::cluster
