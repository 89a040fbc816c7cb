// The uncompressed average over ranks, computed by chunk owners: every rank sends each chunk to its
// owner, which adds them in rank order in f32 and sends the average to all ranks. So the result is
// bit-identical on every rank and with every transport.
#pragma once

#include <cstdint>
#include <functional>

#include "onebit/exchange/comm/bucket_pipeline.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

// The arithmetic of the dense exchange, computed on the device of its buffers. Wire types are f32,
// bf16 and f16.

// to = from, f32 to the wire's type, rounded to nearest even.
void narrow_to_wire(Context& context, ConstView from, View to);
// to = from, the wire's type to f32.
void widen_from_wire(Context& context, ConstView from, View to);
// result [elements] = the sum over ranks, in rank order, of received [ranks, elements], divided by
// the number of ranks. Sums are f32.
void average_on_wire(Context& context, ConstView received, View result);

// Returns f32 [elements of the bucket]: this rank's values, and after finish() the average over
// ranks. They must live until then. A single rank keeps its values unchanged.
using DenseFill = std::function<View(Context&, const BucketInFlight&)>;

// The stations of this exchange. `wire` is the type on the wire: f32, bf16 or f16
// (`communication_data_type`). The 16-bit types round every contribution once and the average once.
// Error: another type.
BucketStations dense_stations(DType wire, int world_size, DenseFill fill);

// Bytes that each rank sends in a ring all-reduce of `elements` 16-bit values: the baseline for the
// savings by compression.
constexpr int64_t ring_bytes_16bit(int64_t elements, int world_size) {
  return 4 * elements * (world_size - 1) / world_size;
}

}  // namespace onebit::comm
