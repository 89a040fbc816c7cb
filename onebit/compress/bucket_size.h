// How large the buckets of the compressed exchange are. A bucket costs two messages to every other
// rank, each of one chunk at one bit an element: of 4 MiB of f32 a chunk is 66 kB on 2 ranks and
// 2.1 kB on 64, where a network then spends its time on the latency of messages. So these buckets
// are sized by what a message holds, those of the dense exchange by their values.
#pragma once

#include <cstdint>

#include "onebit/comm/bucket.h"

namespace onebit::compress {

// Of a message to one peer, at least: half a millisecond at 1 Gb/s, some times the latency of
// Ethernet.
inline constexpr int64_t kMessageBytes = int64_t{64} << 10;

// A bucket leaves once all of it is ready, so few large ones would leave late, and an exchange
// reserves memory for a bucket's values and for kBucketsInFlight of its messages.
inline constexpr int64_t kLeastBuckets = 8;

// Buckets of `least_bytes` of f32, made larger until a chunk holds kMessageBytes on the wire, but
// for that not so large that there are fewer than kLeastBuckets. One rank sends nothing: of
// `least_bytes`. Errors: as comm::Buckets.
comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes);

// What a message of a whole bucket to one peer holds.
int64_t message_bytes(const comm::Buckets& buckets, int world_size);

}  // namespace onebit::compress
