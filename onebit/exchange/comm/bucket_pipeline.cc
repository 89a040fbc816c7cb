#include "onebit/exchange/comm/bucket_pipeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"

namespace onebit::comm {
namespace {

std::span<std::byte> first_bytes(const Buffer& buffer, int64_t size_bytes) {
  ONEBIT_INVARIANT(size_bytes <= buffer.size_bytes());
  return {buffer.data(), static_cast<size_t>(size_bytes)};
}

void pass(const BucketStations::Station& station, Context& context, BucketInFlight& in_flight) {
  if (station) station(context, in_flight);
}

}  // namespace

BucketPipeline::BucketPipeline(Communicator& communicator, const Buckets& buckets,
                               BucketStations stations)
    : communicator_(communicator),
      buckets_(buckets),
      stations_(std::move(stations)),
      slots_(std::min<int64_t>(kBucketsInFlight, buckets.count())) {
  if (sends()) reserve();
}

int64_t BucketPipeline::wire_bytes() const {
  const int world = communicator_.world_size(), self = communicator_.rank();
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    for (int rank = 0; rank < world; ++rank) {
      if (rank == self) continue;
      total += stations_.chunk_bytes(chunk_of(buckets_.range(bucket), world, rank)) +
               stations_.chunk_bytes(chunk_of(buckets_.range(bucket), world, self));
    }
  }
  return total;
}

void BucketPipeline::reserve() {
  using Provides = BucketStations::Provides;
  const int world = communicator_.world_size();
  const Device device = communicator_.device();
  int64_t largest_bucket_bytes = 0, largest_chunk_bytes = 0;
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    const Range range = buckets_.range(bucket);
    int64_t total = 0;
    for (int rank = 0; rank < world; ++rank) {
      total += stations_.chunk_bytes(chunk_of(range, world, rank));
    }
    largest_bucket_bytes = std::max(largest_bucket_bytes, total);
    largest_chunk_bytes = std::max(
        largest_chunk_bytes, stations_.chunk_bytes(chunk_of(range, world, communicator_.rank())));
  }
  for (int number = 0; number < slots_; ++number) {
    Slot& slot = in_flight_[static_cast<size_t>(number)];
    slot.bucket.slot = number;
    slot.bucket.chunk_bytes.resize(static_cast<size_t>(world));
    slot.bucket.incoming_bytes.resize(static_cast<size_t>(world));
    slot.bucket.poll = [this] {
      for (Slot& other : in_flight_) other.request.test();
    };
    slot.received = Buffer(device, largest_chunk_bytes * world);
    if (stations_.fill_provides == Provides::kSendResultAndGathered) continue;
    slot.send = Buffer(device, largest_bucket_bytes);
    slot.result = Buffer(device, largest_chunk_bytes);
    if (stations_.fill_provides == Provides::kGathered) continue;
    slot.gathered = Buffer(device, largest_bucket_bytes);
  }
}

void BucketPipeline::prepare(Slot& slot, int64_t bucket) {
  using Provides = BucketStations::Provides;
  const int world = communicator_.world_size(), self = communicator_.rank();
  BucketInFlight& in_flight = slot.bucket;
  in_flight.bucket = bucket;
  in_flight.range = buckets_.range(bucket);
  in_flight.chunk = chunk_of(in_flight.range, world, self);
  if (!sends()) return;
  for (int rank = 0; rank < world; ++rank) {
    in_flight.chunk_bytes[static_cast<size_t>(rank)] =
        stations_.chunk_bytes(chunk_of(in_flight.range, world, rank));
  }
  const int64_t own_bytes = in_flight.chunk_bytes[static_cast<size_t>(self)];
  std::fill(in_flight.incoming_bytes.begin(), in_flight.incoming_bytes.end(), own_bytes);
  const int64_t total =
      std::accumulate(in_flight.chunk_bytes.begin(), in_flight.chunk_bytes.end(), int64_t{0});
  in_flight.received = first_bytes(slot.received, own_bytes * world);
  if (stations_.fill_provides == Provides::kSendResultAndGathered) return;
  in_flight.send = first_bytes(slot.send, total);
  in_flight.result = first_bytes(slot.result, own_bytes);
  if (stations_.fill_provides == Provides::kGathered) return;
  in_flight.gathered = first_bytes(slot.gathered, total);
}

void BucketPipeline::fill(Context& context, BucketInFlight& in_flight) {
  const Stopwatch stopwatch;
  const PhaseSpan phase(context, "exchange fill", in_flight.bucket);
  pass(stations_.fill, context, in_flight);
  seconds_.fill += stopwatch.seconds();
}

void BucketPipeline::start_scatter(Context& context, int64_t bucket) {
  ONEBIT_INVARIANT(submitted_ - completed_ < slots_);
  Slot& slot = slot_of(submitted_);
  prepare(slot, bucket);
  fill(context, slot.bucket);
  const Stopwatch stopwatch;
  {
    const PhaseSpan phase(context, "exchange pack", bucket);
    pass(stations_.pack, context, slot.bucket);
    context.synchronize();  // transports are not stream-ordered
  }
  seconds_.compute += stopwatch.seconds();
  const PhaseSpan phase(context, "exchange send", bucket);
  slot.request = communicator_.start_all_to_all_v({.send = slot.bucket.send,
                                                   .send_bytes = slot.bucket.chunk_bytes,
                                                   .receive = slot.bucket.received,
                                                   .receive_bytes = slot.bucket.incoming_bytes});
  ++submitted_;
}

void BucketPipeline::wait(const Context& context, Slot& slot) {
  const PhaseSpan phase(context, "exchange wait", slot.bucket.bucket);
  slot.request.wait();
}

void BucketPipeline::start_gather(Context& context) {
  Slot& slot = slot_of(gathered_);
  Stopwatch stopwatch;
  wait(context, slot);
  seconds_.wait += stopwatch.restart();
  {
    const PhaseSpan phase(context, "exchange reduce", slot.bucket.bucket);
    pass(stations_.reduce, context, slot.bucket);
    context.synchronize();
  }
  seconds_.compute += stopwatch.seconds();
  const PhaseSpan phase(context, "exchange return", slot.bucket.bucket);
  slot.request = communicator_.start_all_gather_v(slot.bucket.result, slot.bucket.gathered,
                                                  slot.bucket.chunk_bytes);
  ++gathered_;
}

void BucketPipeline::complete(Context& context) {
  Slot& slot = slot_of(completed_);
  const Stopwatch stopwatch;
  wait(context, slot);
  seconds_.wait += stopwatch.seconds();
  deliver(context, slot.bucket);
  ++completed_;
}

void BucketPipeline::deliver(Context& context, BucketInFlight& in_flight) {
  const Stopwatch stopwatch;
  const PhaseSpan phase(context, "exchange deliver", in_flight.bucket);
  pass(stations_.deliver, context, in_flight);
  seconds_.compute += stopwatch.seconds();
}

void BucketPipeline::submit(Context& context, int64_t bucket) {
  if (!sends()) {
    Slot& slot = slot_of(0);
    prepare(slot, bucket);
    fill(context, slot.bucket);
    return deliver(context, slot.bucket);
  }
  start_scatter(context, bucket);
  if (submitted_ - gathered_ > 1) start_gather(context);
  if (gathered_ - completed_ > 1) complete(context);
}

void BucketPipeline::finish(Context& context) {
  while (gathered_ < submitted_) start_gather(context);
  while (completed_ < submitted_) complete(context);
}

}  // namespace onebit::comm
