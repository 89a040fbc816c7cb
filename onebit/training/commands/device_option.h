// --device and --threads, the same for every command that computes.
#pragma once

#include <string>

#include "onebit/math/device/context.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::commands {

struct DeviceOptions {
  std::string device = "auto";
  int threads = 0;
};

// Each thread has memory of its own: a mistyped number must not exhaust the machine's.
inline constexpr int kMaxThreads = 1024;

void add_device_options(Command command, DeviceOptions& options);

// Makes the context for these options. The process is `local_rank` of `local_ranks` on this
// machine, which selects its CUDA device or its share of the processors.
Context make_context(const DeviceOptions& options, int local_rank, int local_ranks);

}  // namespace onebit::commands
