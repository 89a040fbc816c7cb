#include "onebit/exchange/comm/dense_exchange.h"

#include "onebit/exchange/comm/dense_codec.h"
#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

// Wire bytes viewed as elements of type `wire` on their device.
View wire_view(std::span<std::byte> bytes, DType wire, Shape shape, Device device) {
  ONEBIT_INVARIANT(static_cast<int64_t>(bytes.size()) == shape.elements() * size_bytes_of(wire));
  return {bytes.data(), wire, shape, device};
}

}  // namespace

DenseExchange::DenseExchange(Communicator& communicator, const Buckets& buckets, DType wire)
    : BucketExchange(communicator, buckets), wire_(wire) {
  require(wire == DType::kF32 || wire == DType::kBF16 || wire == DType::kF16,
          "gradients cannot be sent as {}: communication_data_type must be fp32, bf16 or fp16",
          name_of(wire));
  if (communicator.world_size() > 1) reserve();
}

int64_t DenseExchange::chunk_bytes(Range chunk) const {
  return chunk.elements() * size_bytes_of(wire_);
}

void DenseExchange::submit(Context& context, int64_t bucket, View values) {
  ONEBIT_INVARIANT(values.dtype() == DType::kF32);
  ONEBIT_INVARIANT(values.elements() == buckets().range(bucket).elements());
  if (communicator().world_size() == 1) return;
  values_[static_cast<size_t>(next_slot())] = values;
  advance(context, bucket);
}

void DenseExchange::average(Context& context, View values) {
  ONEBIT_INVARIANT(values.elements() == buckets().elements());
  const View flat = values.reshaped({values.elements()});
  for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
    const Range range = buckets().range(bucket);
    submit(context, bucket, flat.rows(range.begin, range.end));
  }
  finish(context);
}

void DenseExchange::set_memory(InFlightBucket& in_flight) {
  const View values = values_[static_cast<size_t>(in_flight.slot)];
  const int64_t offset = in_flight.chunk.begin - buckets().range(in_flight.bucket).begin;
  in_flight.send = {static_cast<std::byte*>(values.raw()),
                    static_cast<size_t>(values.size_bytes())};
  in_flight.gathered = in_flight.send;
  in_flight.result = in_flight.send.subspan(static_cast<size_t>(offset) * sizeof(float),
                                            static_cast<size_t>(chunk_bytes(in_flight.chunk)));
}

void DenseExchange::pack(Context& context, InFlightBucket& in_flight) {
  if (uses_caller_memory()) return;
  const View values = values_[static_cast<size_t>(in_flight.slot)];
  narrow_to_wire(context, values,
                 wire_view(in_flight.send, wire_, {values.elements()}, context.device()));
}

void DenseExchange::reduce(Context& context, InFlightBucket& in_flight) {
  const int64_t elements = in_flight.chunk.elements();
  average_on_wire(context,
                  wire_view(in_flight.received, wire_, {communicator().world_size(), elements},
                            context.device()),
                  wire_view(in_flight.result, wire_, {elements}, context.device()));
}

void DenseExchange::unpack(Context& context, InFlightBucket& in_flight) {
  if (uses_caller_memory()) return;
  const View values = values_[static_cast<size_t>(in_flight.slot)];
  widen_from_wire(
      context, wire_view(in_flight.gathered, wire_, {values.elements()}, context.device()), values);
}

}  // namespace onebit::comm
