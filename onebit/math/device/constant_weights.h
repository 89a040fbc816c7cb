// Weights that do not change for a while, as in prediction or between two updates: products may
// keep copies of them in a layout that they multiply faster.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"

namespace onebit {

// While it lives, the memory it was given keeps its contents between calls of changed(). On a CPU
// it owns packed copies of the weights, one for every direction in which they are multiplied. Each
// is as large as the weights. On CUDA devices it has no effect. The context must outlive it.
class ConstantWeights {
 public:
  ConstantWeights() = default;
  ConstantWeights(Context& context, const void* values, int64_t size_bytes);
  ConstantWeights(ConstantWeights&& other) noexcept;
  ConstantWeights& operator=(ConstantWeights&& other) noexcept;
  ~ConstantWeights();

  // The memory was overwritten: copies are refreshed when they are next used.
  void changed();

 private:
  OnednnStream* onednn_ = nullptr;
  const void* values_ = nullptr;
};

// Whether all that is left of a weight is a copy of rounded values (ops/int8_linear.h).
bool is_quantised(const Context& context, const void* weight);

}  // namespace onebit
