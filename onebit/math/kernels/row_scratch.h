// Scratch memory of a thread for one row: two f32 rows and the row's dropout bits.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/dropout_plan.h"

namespace onebit::kernels {

class RowScratch {
 public:
  RowScratch(Context& context, int64_t parts, int64_t columns)
      : columns_(columns),
        stride_bytes_((columns * 8 + dropout_bits_elements(columns) * 2 + 63) / 64 * 64),
        memory_(context.scratch().take(parts * stride_bytes_)) {}

  float* first(int64_t part) const {
    return reinterpret_cast<float*>(memory_.data() + part * stride_bytes_);
  }
  float* second(int64_t part) const { return first(part) + columns_; }
  uint16_t* bits(int64_t part) const {
    return reinterpret_cast<uint16_t*>(second(part) + columns_);
  }

 private:
  int64_t columns_, stride_bytes_;
  Scratch::Block memory_;
};

}  // namespace onebit::kernels
