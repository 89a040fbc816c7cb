#include "onebit/comm/dense_exchange.h"

#include <cstring>

#include "onebit/base/error.h"

namespace onebit::comm {
namespace {

constexpr int64_t kGrainElements = 1 << 15;

template <typename Body>
void with_wire_type(DType wire, const Body& body) {
  switch (wire) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(bf16{});
    case DType::kF16:
      return body(f16{});
    default:
      fail("gradients cannot travel as {}: communication_data_type is f32, bf16 or f16",
           name_of(wire));
  }
}

template <typename Wire>
void average_chunks(Context& context, const Wire* received, int64_t elements, int world_size,
                    Wire* result) {
  const float share = 1.0f / static_cast<float>(world_size);
  context.parallel_for(elements, kGrainElements, [&](int64_t begin, int64_t end) {
    // Tiles that stay in the first cache while the ranks are added to them.
    constexpr int64_t kTile = 1024;
    float sum[kTile];
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t count = std::min(kTile, end - at);
      for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<float>(received[at + i]);
      for (int rank = 1; rank < world_size; ++rank) {
        const Wire* from = received + rank * elements + at;
        for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<float>(from[i]);
      }
      for (int64_t i = 0; i < count; ++i) result[at + i] = Wire(sum[i] * share);
    }
  });
}

}  // namespace

DenseExchange::DenseExchange(Communicator& communicator, const Buckets& buckets, DType wire)
    : BucketExchange(communicator, buckets), wire_(wire) {
  with_wire_type(wire, [](auto) {});
  require(communicator.device().is_cpu(), "the dense exchange is not built for {} memory",
          name_of(communicator.device().type));
  if (communicator.world_size() > 1) book();
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

void DenseExchange::set_memory(Flight& flight) {
  const View values = values_[static_cast<size_t>(flight.slot)];
  const int64_t offset = flight.chunk.begin - buckets().range(flight.bucket).begin;
  flight.send = {static_cast<std::byte*>(values.raw()), static_cast<size_t>(values.size_bytes())};
  flight.gathered = flight.send;
  flight.result = flight.send.subspan(static_cast<size_t>(offset) * sizeof(float),
                                      static_cast<size_t>(chunk_bytes(flight.chunk)));
}

void DenseExchange::pack(Context& context, Flight& flight) {
  if (uses_caller_memory()) return;
  const View values = values_[static_cast<size_t>(flight.slot)];
  with_wire_type(wire_, [&]<typename Wire>(Wire) {
    const float* from = values.data<float>();
    Wire* to = reinterpret_cast<Wire*>(flight.send.data());
    context.parallel_for(values.elements(), kGrainElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = Wire(from[i]);
    });
  });
}

void DenseExchange::reduce(Context& context, Flight& flight) {
  with_wire_type(wire_, [&]<typename Wire>(Wire) {
    average_chunks(context, reinterpret_cast<const Wire*>(flight.received.data()),
                   flight.chunk.elements(), communicator().world_size(),
                   reinterpret_cast<Wire*>(flight.result.data()));
  });
}

void DenseExchange::unpack(Context& context, Flight& flight) {
  if (uses_caller_memory()) return;
  const View values = values_[static_cast<size_t>(flight.slot)];
  with_wire_type(wire_, [&]<typename Wire>(Wire) {
    const Wire* from = reinterpret_cast<const Wire*>(flight.gathered.data());
    float* to = values.data<float>();
    context.parallel_for(values.elements(), kGrainElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(from[i]);
    });
  });
}

}  // namespace onebit::comm
