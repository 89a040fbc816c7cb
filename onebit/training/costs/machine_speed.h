// The speed of this machine in a short measurement: the ceiling to which training is compared.
#pragma once

#include "onebit/ground/base/dtype.h"
#include "onebit/math/device/context.h"

namespace onebit::costs {

// Operations per second (a multiplication and an addition are two) of the product of a feed-forward
// layer of bert-base, [1024, 768] . [768, 3072], with operands of `type`: the fastest of the runs
// that fit into `seconds`.
double measure_product(Context& context, DType type, double seconds);

// Bytes per second, read and written, of copying buffers far larger than caches with all threads of
// the context: the fastest of the runs that fit into `seconds`. CPU contexts only.
double measure_memory(Context& context, double seconds);

}  // namespace onebit::costs
