#include "onebit/cli/device_option.h"

#include <algorithm>

#include "onebit/base/error.h"
#include "onebit/base/parallel_for.h"
#include "onebit/device/memory.h"

namespace onebit::cli {

void add_device_options(Command command, DeviceOptions& options) {
  command
      .add_option("--device", options.device,
                  "cpu, cuda, or auto (cuda if built in and a device is available)")
      .check(one_of({"auto", "cpu", "cuda"}))
      .capture_default_str();
  command
      .add_option("--threads", options.threads,
                  "Threads of each rank; 0 shares the processors among the ranks of a machine")
      .check(whole_between(0, kMaxThreads))
      .capture_default_str();
}

Context make_context(const DeviceOptions& options, int local_rank, int local_ranks) {
  const int share = std::max(1, available_threads() / std::max(1, local_ranks));
  const int threads = options.threads > 0 ? options.threads : share;
  const int devices = options.device == "cpu" ? 0 : memory::cuda_device_count();
  if (options.device == "cuda" || devices > 0) {
    return Context::cuda(devices > 0 ? local_rank % devices : 0, threads);
  }
  return Context::cpu(threads);
}

}  // namespace onebit::cli
