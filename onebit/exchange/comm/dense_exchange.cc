#include "onebit/exchange/comm/dense_exchange.h"

#include <utility>

#include "onebit/exchange/comm/dense_codec.h"
#include "onebit/ground/base/error.h"

namespace onebit::comm {
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
