#include "onebit/training/commands/device_option.h"

#include "onebit/math/device/device_choice.h"

namespace onebit::commands {

void add_device_options(Command command, DeviceOptions& options) {
  command
      .add_option("--device", options.device,
                  "cpu, cuda, or auto (cuda if built in and a device is available)")
      .check(one_of({"auto", "cpu", "cuda"}))
      .capture_default_str();
  command
      .add_option("--threads", options.threads,
                  "Threads to compute with, where 0 is all processors of this machine, which its "
                  "ranks share")
      .check(whole_between(0, kMaxThreads))
      .capture_default_str();
}

Context make_context(const DeviceOptions& options, int local_rank, int local_ranks) {
  return open_device(options.device, {local_rank, local_ranks}, options.threads);
}

}  // namespace onebit::commands
