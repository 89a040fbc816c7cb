#include "onebit/device/device_choice.h"

#include <algorithm>
#include <string>

#include "onebit/base/log.h"
#include "onebit/base/parallel_for.h"
#include "onebit/device/memory.h"

namespace onebit {

Context open_device(std::string_view device, const LocalRank& local, int threads) {
  if (threads == 0) threads = std::max(1, available_threads() / std::max(1, local.ranks));
  const int devices = device == "cpu" ? 0 : memory::cuda_device_count();
  const bool speaks = local.rank == 0;
  if (device == "cuda" || devices > 0) {
    const int index = devices > 0 ? local.rank % devices : 0;
    Context context = Context::cuda(index, threads);
    if (speaks && !memory::cuda_device_is_checked(index)) {
      log_warning(
          "onebit's CUDA kernels have passed gpu-check on compute capability 9.0, but not yet on a "
          "device like this one ({}): run gpu-check here once (docs/cuda.md)",
          memory::describe_cuda_device(index));
    }
    return context;
  }
  const std::string why = device == "auto" ? memory::why_no_cuda_device() : "";
  if (speaks && !why.empty()) log_warning("using the CPU: {}", why);
  return Context::cpu(threads);
}

}  // namespace onebit
