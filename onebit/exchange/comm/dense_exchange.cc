#include "onebit/exchange/comm/dense_exchange.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/error.h"
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

namespace {

// Wire bytes viewed as elements of type `wire` on their device.
View wire_view(std::span<std::byte> bytes, DType wire, Shape shape, Device device) {
  ONEBIT_INVARIANT(static_cast<int64_t>(bytes.size()) == shape.elements() * size_bytes_of(wire));
  return {bytes.data(), wire, shape, device};
}

// Values that need no conversion are sent from their own memory, and the averages arrive in it.
void exchange_in_place(BucketInFlight& in_flight) {
  const View& values = in_flight.values;
  const Range whole = in_flight.range, chunk = in_flight.chunk;
  in_flight.send = {static_cast<std::byte*>(values.raw()),
                    static_cast<size_t>(values.size_bytes())};
  in_flight.gathered = in_flight.send;
  in_flight.result =
      in_flight.send.subspan(static_cast<size_t>(chunk.begin - whole.begin) * sizeof(float),
                             static_cast<size_t>(chunk.elements()) * sizeof(float));
}

}  // namespace

BucketStations dense_stations(DType wire, int world_size, DenseFill fill) {
  require(wire == DType::kF32 || wire == DType::kBF16 || wire == DType::kF16,
          "gradients cannot be sent as {}: communication_data_type must be fp32, bf16 or fp16",
          name_of(wire));
  const bool in_place = wire == DType::kF32;
  BucketStations stations;
  stations.chunk_bytes = [=](Range chunk) { return chunk.elements() * size_bytes_of(wire); };
  if (in_place) stations.fill_provides = BucketStations::Provides::kSendResultAndGathered;
  stations.fill = [=, fill = std::move(fill)](Context& context, BucketInFlight& in_flight) {
    in_flight.values = fill(context, in_flight);
    ONEBIT_INVARIANT(in_flight.values.dtype() == DType::kF32);
    ONEBIT_INVARIANT(in_flight.values.elements() == in_flight.range.elements());
    if (in_place) exchange_in_place(in_flight);
  };
  stations.pack = [=](Context& context, BucketInFlight& in_flight) {
    if (in_place) return;
    const Shape all{in_flight.values.elements()};
    narrow_to_wire(context, in_flight.values,
                   wire_view(in_flight.send, wire, all, context.device()));
  };
  stations.reduce = [=](Context& context, BucketInFlight& in_flight) {
    const int64_t elements = in_flight.chunk.elements();
    average_on_wire(context,
                    wire_view(in_flight.received, wire, {world_size, elements}, context.device()),
                    wire_view(in_flight.result, wire, {elements}, context.device()));
  };
  stations.deliver = [=](Context& context, BucketInFlight& in_flight) {
    if (in_place || world_size == 1) return;
    const Shape all{in_flight.values.elements()};
    widen_from_wire(context, wire_view(in_flight.gathered, wire, all, context.device()),
                    in_flight.values);
  };
  return stations;
}

}  // namespace onebit::comm
