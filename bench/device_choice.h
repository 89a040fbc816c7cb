// The device that a bench's --device names.
#pragma once

#include <string>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/context.h"

namespace onebit {

// "cpu" with `threads` threads, or "cuda": the first CUDA device. Errors: any other value, no CUDA
// device.
inline Context context_on(const std::string& device, int threads) {
  require(device == "cpu" || device == "cuda", "--device is cpu or cuda, not {}", device);
  return device == "cuda" ? Context::cuda(0) : Context::cpu(threads);
}

}  // namespace onebit
