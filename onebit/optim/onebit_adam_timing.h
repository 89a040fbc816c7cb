// Measures how long 1-bit Adam's passes over the parameters take on this machine
// (ops/onebit_adam_update.h), for the forecast of a step.
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/tensor/dtype.h"

namespace onebit::optim {

// Seconds for each element that the compressed phase spends on the processor besides coding.
struct OneBitAdamTiming {
  double bucket_seconds = 0;  // with a bucket, before it leaves and when it has arrived
  double step_seconds = 0;    // once all have arrived, and gradients set to zero
};

// Measured on buffers of `elements` (a multiple of 16), each pass as by steady_seconds().
// `exchanging` is the context of the thread that exchanges buckets, `computing` that of the step;
// both on one device.
OneBitAdamTiming measure_onebit_adam(Context& exchanging, Context& computing, DType compute_type,
                                     int64_t elements, int world_size);

}  // namespace onebit::optim
