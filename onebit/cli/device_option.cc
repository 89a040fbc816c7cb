#include "onebit/cli/device_option.h"

#include <algorithm>

#include "onebit/base/error.h"
#include "onebit/base/log.h"
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
  const bool speaks = local_rank == 0;
  if (options.device == "cuda" || devices > 0) {
    const int index = devices > 0 ? local_rank % devices : 0;
    Context context = Context::cuda(index, threads);
    if (speaks && !memory::cuda_device_is_checked(index)) {
      log_warning(
          "onebit's CUDA kernels have passed gpu-check on compute capability 9.0, but not yet on a "
          "device like this one ({}): run gpu-check here once (docs/cuda.md)",
          memory::describe_cuda_device(index));
    }
    return context;
  }
  const std::string why = options.device == "auto" ? memory::why_no_cuda_device() : "";
  if (speaks && !why.empty()) log_warning("using the CPU: {}", why);
  return Context::cpu(threads);
}

}  // namespace onebit::cli
