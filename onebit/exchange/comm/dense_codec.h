// The arithmetic of the dense exchange, computed on the device of its buffers. Wire types are f32,
// bf16 and f16.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::comm {

// to = from, f32 to the wire's type; rounds to nearest even.
void narrow_to_wire(Context& context, ConstView from, View to);
// to = from, the wire's type to f32.
void widen_from_wire(Context& context, ConstView from, View to);
// result [elements] = the sum over ranks, in rank order, of received [ranks, elements], divided by
// the number of ranks; sums are f32.
void average_on_wire(Context& context, ConstView received, View result);

}  // namespace onebit::comm
