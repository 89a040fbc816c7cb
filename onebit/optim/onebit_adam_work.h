// What 1-bit Adam's passes over the parameters take on this machine, for the forecast of a step.
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/optim/optimizer_recipe.h"
#include "onebit/tensor/dtype.h"

namespace onebit::optim {

// Measured on buffers of `elements`, in a moment. `exchanging` is the context of the thread that
// exchanges buckets, `computing` that of the step.
CompressedWork measure_onebit_adam(Context& exchanging, Context& computing, DType compute_type,
                                   int64_t elements, int world_size);

}  // namespace onebit::optim
