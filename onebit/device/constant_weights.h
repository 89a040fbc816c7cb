// Weights that do not change, as in prediction and evaluation: products may keep copies of them in
// a layout that they multiply faster.
#pragma once

#include <cstdint>

#include "onebit/device/context.h"

namespace onebit {

// While it lives, the memory it was given keeps its contents; copies (on a CPU, at most as large as
// that memory) are freed with it. On CUDA devices it has no effect. The context must outlive it.
class ConstantWeights {
 public:
  ConstantWeights() = default;
  ConstantWeights(Context& context, const void* values, int64_t size_bytes);
  ConstantWeights(ConstantWeights&& other) noexcept;
  ConstantWeights& operator=(ConstantWeights&& other) noexcept;
  ~ConstantWeights();

 private:
  OnednnStream* onednn_ = nullptr;
  const void* values_ = nullptr;
};

}  // namespace onebit
