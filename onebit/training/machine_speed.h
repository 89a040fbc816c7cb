// The speed of this machine in a short measurement: the ceiling that training is compared with.
#pragma once

#include "onebit/device/context.h"
#include "onebit/tensor/dtype.h"

namespace onebit::training {

// Operations a second (a multiplication and an addition are two) of the product of a feed-forward
// layer of bert-base, [1024, 768] . [768, 3072], with operands of `type`: the best of what fits
// into `seconds`.
double measure_product(Context& context, DType type, double seconds);

// Bytes a second, read and written, of copying buffers far larger than caches with all threads of
// the context: the best of what fits into `seconds`. CPU contexts only.
double measure_memory(Context& context, double seconds);

}  // namespace onebit::training
