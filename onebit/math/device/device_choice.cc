#include "onebit/math/device/device_choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/memory.h"

namespace onebit {
namespace {

// The device that a rank takes: devices of too small a compute capability are left out if there are
// others.
int index_for(const LocalRank& local, int devices, bool speaks) {
  const std::vector<int> capable = memory::capable_cuda_devices();
  if (capable.empty()) return devices > 0 ? local.rank % devices : 0;
  for (int index = 0; speaks && index < devices; ++index) {
    if (std::ranges::find(capable, index) != capable.end()) continue;
    log_warning("not used: {}", memory::why_cuda_device_is_unusable(index));
  }
  return capable[static_cast<size_t>(local.rank) % capable.size()];
}

Context on_the_cpu(int threads, bool speaks, const std::string& why) {
  if (speaks && !why.empty()) log_warning("using the CPU: {}", why);
  return Context::cpu(threads);
}

}  // namespace

Context open_device(std::string_view device, const LocalRank& local, int threads) {
  if (threads == 0) threads = std::max(1, available_threads() / std::max(1, local.ranks));
  const int devices = device == "cpu" ? 0 : memory::cuda_device_count();
  const bool speaks = local.rank == 0;
  std::string why;
  if (device == "cuda" || devices > 0) {
    const int index = index_for(local, devices, speaks);
    if (device == "auto") why = memory::why_cuda_device_is_unusable(index);
    if (!why.empty()) return on_the_cpu(threads, speaks, why);
    Context context = Context::cuda(index, threads);
    if (speaks && !memory::cuda_device_is_checked(index)) {
      log_warning(
          "onebit's CUDA kernels have passed gpu-check on compute capability 9.0, but not yet on a "
          "device like this one ({}): run gpu-check here once (docs/cuda.md)",
          memory::describe_cuda_device(index));
    }
    return context;
  }
  if (device == "auto") why = memory::why_no_cuda_device();
  return on_the_cpu(threads, speaks, why);
}

}  // namespace onebit
