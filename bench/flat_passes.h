// Benchmarks of the passes of an update over flat buffers.
#pragma once

#include "bench/device_bench.h"

namespace onebit {

// The optimizers' passes and the codec over 336 M elements.
void bench_flat_passes(DeviceBench& bench);

}  // namespace onebit
