#include "onebit/exchange/comm/bucket_exchange.h"

#include <algorithm>
#include <numeric>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"

namespace onebit::comm {
namespace {

std::span<std::byte> first_bytes(const Buffer& buffer, int64_t size_bytes) {
  ONEBIT_INVARIANT(size_bytes <= buffer.size_bytes());
  return {buffer.data(), static_cast<size_t>(size_bytes)};
}

}  // namespace

BucketExchange::BucketExchange(Communicator& communicator, const Buckets& buckets)
    : communicator_(communicator),
      buckets_(buckets),
      slots_(std::min<int64_t>(kSlots, buckets.count())) {}

int64_t BucketExchange::wire_bytes() const {
  const int world = communicator_.world_size(), self = communicator_.rank();
  int64_t total = 0;
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    for (int rank = 0; rank < world; ++rank) {
      if (rank == self) continue;
      total += chunk_bytes(chunk_of(buckets_.range(bucket), world, rank)) +
               chunk_bytes(chunk_of(buckets_.range(bucket), world, self));
    }
  }
  return total;
}

void BucketExchange::reserve() {
  const int world = communicator_.world_size();
  int64_t all_bytes = 0, largest_bucket_bytes = 0, largest_chunk_bytes = 0;
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    int64_t total = 0;
    for (int rank = 0; rank < world; ++rank) {
      total += chunk_bytes(chunk_of(buckets_.range(bucket), world, rank));
    }
    if (keeps_gathered()) kept_offsets_.push_back(all_bytes);
    all_bytes += total;
    largest_bucket_bytes = std::max(largest_bucket_bytes, total);
    largest_chunk_bytes =
        std::max(largest_chunk_bytes,
                 chunk_bytes(chunk_of(buckets_.range(bucket), world, communicator_.rank())));
  }
  if (keeps_gathered()) {
    kept_offsets_.push_back(all_bytes);
    kept_ = Buffer(communicator_.device(), all_bytes);
    kept_.fill_zero();
  }
  for (int slot = 0; slot < slots_; ++slot) {
    InFlightBucket& in_flight = in_flight_[static_cast<size_t>(slot)];
    in_flight.slot = slot;
    in_flight.chunk_bytes.resize(static_cast<size_t>(world));
    in_flight.incoming_bytes.resize(static_cast<size_t>(world));
    in_flight.received_buffer = Buffer(communicator_.device(), largest_chunk_bytes * world);
    if (uses_caller_memory()) continue;
    in_flight.send_buffer = Buffer(communicator_.device(), largest_bucket_bytes);
    in_flight.result_buffer = Buffer(communicator_.device(), largest_chunk_bytes);
    if (keeps_gathered()) continue;
    in_flight.gathered_buffer = Buffer(communicator_.device(), largest_bucket_bytes);
  }
}

void BucketExchange::prepare(InFlightBucket& in_flight, int64_t bucket) {
  const int world = communicator_.world_size(), self = communicator_.rank();
  const Range range = buckets_.range(bucket);
  in_flight.bucket = bucket;
  in_flight.chunk = chunk_of(range, world, self);
  for (int rank = 0; rank < world; ++rank) {
    in_flight.chunk_bytes[static_cast<size_t>(rank)] = chunk_bytes(chunk_of(range, world, rank));
  }
  const int64_t own_bytes = in_flight.chunk_bytes[static_cast<size_t>(self)];
  std::fill(in_flight.incoming_bytes.begin(), in_flight.incoming_bytes.end(), own_bytes);
  const int64_t total =
      std::accumulate(in_flight.chunk_bytes.begin(), in_flight.chunk_bytes.end(), int64_t{0});
  in_flight.received = first_bytes(in_flight.received_buffer, own_bytes * world);
  if (uses_caller_memory()) {
    set_memory(in_flight);
    return;
  }
  in_flight.send = first_bytes(in_flight.send_buffer, total);
  in_flight.result = first_bytes(in_flight.result_buffer, own_bytes);
  in_flight.gathered =
      keeps_gathered() ? gathered_of(bucket) : first_bytes(in_flight.gathered_buffer, total);
}

std::span<std::byte> BucketExchange::gathered_of(int64_t bucket) const {
  const auto index = static_cast<size_t>(bucket);
  const int64_t begin = kept_offsets_[index], end = kept_offsets_[index + 1];
  return {kept_.data() + begin, static_cast<size_t>(end - begin)};
}

void BucketExchange::start_scatter(Context& context, int64_t bucket) {
  ONEBIT_INVARIANT(submitted_ - completed_ < slots_);
  InFlightBucket& in_flight = in_flight_of(submitted_);
  prepare(in_flight, bucket);
  const Stopwatch stopwatch;
  {
    const PhaseSpan phase(context, "exchange pack", bucket);
    pack(context, in_flight);
    context.synchronize();  // transports are not stream-ordered
  }
  seconds_.compute += stopwatch.seconds();
  const PhaseSpan phase(context, "exchange send", bucket);
  in_flight.request = communicator_.start_all_to_all_v({.send = in_flight.send,
                                                        .send_bytes = in_flight.chunk_bytes,
                                                        .receive = in_flight.received,
                                                        .receive_bytes = in_flight.incoming_bytes});
  ++submitted_;
}

void BucketExchange::wait(const Context& context, InFlightBucket& in_flight) {
  const PhaseSpan phase(context, "exchange wait", in_flight.bucket);
  in_flight.request.wait();
}

void BucketExchange::start_gather(Context& context) {
  InFlightBucket& in_flight = in_flight_of(gathered_);
  Stopwatch stopwatch;
  wait(context, in_flight);
  seconds_.wait += stopwatch.restart();
  {
    const PhaseSpan phase(context, "exchange reduce", in_flight.bucket);
    reduce(context, in_flight);
    context.synchronize();
  }
  seconds_.compute += stopwatch.seconds();
  const PhaseSpan phase(context, "exchange send", in_flight.bucket);
  in_flight.request =
      communicator_.start_all_gather_v(in_flight.result, in_flight.gathered, in_flight.chunk_bytes);
  ++gathered_;
}

void BucketExchange::complete(Context& context) {
  InFlightBucket& in_flight = in_flight_of(completed_);
  Stopwatch stopwatch;
  wait(context, in_flight);
  seconds_.wait += stopwatch.restart();
  const PhaseSpan phase(context, "exchange unpack", in_flight.bucket);
  unpack(context, in_flight);
  seconds_.compute += stopwatch.seconds();
  ++completed_;
}

void BucketExchange::advance(Context& context, int64_t bucket) {
  start_scatter(context, bucket);
  if (submitted_ - gathered_ > 1) start_gather(context);
  if (gathered_ - completed_ > 1) complete(context);
}

void BucketExchange::finish(Context& context) {
  while (gathered_ < submitted_) start_gather(context);
  while (completed_ < submitted_) complete(context);
}

void BucketExchange::poll() {
  for (InFlightBucket& in_flight : in_flight_) in_flight.request.test();
}

}  // namespace onebit::comm
