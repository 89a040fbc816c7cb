// Measures how long the passes of 1-bit Adam over the parameters take on this machine
// (updates/onebit_adam_update.h), for the forecast of a step.
#pragma once

#include <cstdint>

#include "onebit/ground/base/dtype.h"
#include "onebit/math/device/context.h"

namespace onebit::optim {

// Processor seconds per element in the compressed phase, excluding coding.
struct OneBitAdamTiming {
  double bucket_seconds = 0;  // for a bucket, before it is sent and after it has arrived
  double step_seconds = 0;    // after all have arrived
};

// Measures on buffers with a multiple of 16 `elements`. steady_seconds() times each pass.
// `exchanging` is the context of the thread that exchanges buckets, `computing` the context of the
// step. Both are on the same device.
OneBitAdamTiming measure_onebit_adam(Context& exchanging, Context& computing, DType compute_type,
                                     int64_t elements, int world_size);

}  // namespace onebit::optim
