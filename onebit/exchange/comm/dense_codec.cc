#include "onebit/exchange/comm/dense_codec.h"

#include <algorithm>

#include "onebit/math/kernels/device_switch.h"
#include "onebit/math/kernels/for_parts.h"

namespace onebit::comm {

ONEBIT_DEVICE_OP(void, narrow_to_wire, ConstView, View);
ONEBIT_DEVICE_OP(void, widen_from_wire, ConstView, View);
ONEBIT_DEVICE_OP(void, average_on_wire, ConstView, View);

namespace cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 15;

template <typename Wire>
void average_chunks(Context& context, const Wire* received, int64_t elements, int64_t ranks,
                    Wire* result) {
  const float share = 1.0f / static_cast<float>(ranks);
  context.parallel_for(elements, kGrainElements, [&](int64_t begin, int64_t end) {
    // A tile fits the first-level cache while the ranks' values are added to it.
    constexpr int64_t kTile = 1024;
    float sum[kTile];
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t count = std::min(kTile, end - at);
      for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<float>(received[at + i]);
      for (int64_t rank = 1; rank < ranks; ++rank) {
        const Wire* from = received + rank * elements + at;
        for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<float>(from[i]);
      }
      for (int64_t i = 0; i < count; ++i) result[at + i] = Wire(sum[i] * share);
    }
  });
}

}  // namespace

void narrow_to_wire(Context& context, ConstView from, View to) {
  kernels::with_float_type(to.dtype(), [&]<typename Wire>(Wire) {
    const float* source = from.data<float>();
    Wire* target = to.data<Wire>();
    context.parallel_for(from.elements(), kGrainElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i] = Wire(source[i]);
    });
  });
}

void widen_from_wire(Context& context, ConstView from, View to) {
  kernels::with_float_type(from.dtype(), [&]<typename Wire>(Wire) {
    const Wire* source = from.data<Wire>();
    float* target = to.data<float>();
    context.parallel_for(to.elements(), kGrainElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i] = static_cast<float>(source[i]);
    });
  });
}

void average_on_wire(Context& context, ConstView received, View result) {
  kernels::with_float_type(result.dtype(), [&]<typename Wire>(Wire) {
    average_chunks(context, received.data<Wire>(), result.elements(), received.extent(0),
                   result.data<Wire>());
  });
}

}  // namespace cpu

void narrow_to_wire(Context& context, ConstView from, View to) {
  on_device::narrow_to_wire(context, from, to);
}

void widen_from_wire(Context& context, ConstView from, View to) {
  on_device::widen_from_wire(context, from, to);
}

void average_on_wire(Context& context, ConstView received, View result) {
  on_device::average_on_wire(context, received, result);
}

}  // namespace onebit::comm
