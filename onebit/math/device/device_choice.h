// Which device a rank computes on.
#pragma once

#include <string_view>

#include "onebit/math/device/context.h"

namespace onebit {

// A process that is `rank` of the `ranks` on this machine.
struct LocalRank {
  int rank = 0, ranks = 1;
};

// `device` is "cpu", "cuda" or "auto": CUDA if it is built in and a device is available that this
// build has code for. Ranks take the CUDA devices of a machine in turn, without the ones of too
// small a compute capability, and share its processors. `threads` other than 0 sets the number. The
// first rank logs why "auto" has no CUDA device although there is one, which devices are left out,
// and that a device is of a kind on which the kernels have never been checked. Errors: "cuda"
// without a device that can be used.
Context open_device(std::string_view device, const LocalRank& local, int threads);

}  // namespace onebit
