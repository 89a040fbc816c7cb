// Files of a model, a checkpoint or a store, which others may have made. An archive can contain a
// link to /dev/zero, which has no end, or a pipe, which nobody writes into.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit {

inline constexpr uint64_t kMaxJsonBytes = uint64_t{256} << 20;

// Error: `path` is a device, a pipe or a socket, or a link to one, or has more bytes than `most`.
// Does nothing if it does not exist: whoever opens it reports that.
void require_regular_file(const Path& path, uint64_t most = UINT64_MAX);

// read_file() of such a file.
std::string read_regular_file(const Path& path, uint64_t most);

}  // namespace onebit
