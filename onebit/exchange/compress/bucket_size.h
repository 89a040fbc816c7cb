// The size of the buckets of the compressed exchange. A bucket takes two messages to every other
// rank, each of one chunk at one bit per element: for 4 MiB of f32 a chunk is 66 kB on 2 ranks and
// 2.1 kB on 64, where the latency of messages dominates. So these buckets are sized by their
// messages, whereas the buckets of the dense exchange are sized by their values.
#pragma once

#include <cstdint>

#include "onebit/exchange/comm/bucket.h"

namespace onebit::compress {

// The minimum size of a message to one peer: half a millisecond at 1 Gb/s, several times the
// latency of Ethernet.
inline constexpr int64_t kMessageBytes = int64_t{64} << 10;

// The minimum number of buckets: a bucket is sent once it is complete, so few large ones are sent
// late, and an exchange reserves memory for a bucket's values and kBucketsInFlight of its messages.
inline constexpr int64_t kMinBuckets = 8;

// Makes buckets of at least `least_bytes` of f32, larger until a chunk takes kMessageBytes on the
// wire, but not so large that there are fewer than kMinBuckets. A single rank sends nothing. Its
// buckets have `least_bytes`. Errors: as for comm::Buckets.
comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes);

// Does the same for two levels: each rank of a node works on one part of every bucket and exchanges
// it with one rank on each of `nodes` nodes. The parts of a rank form the buckets of one buffer
// (Buckets of their total length) and none is empty. Error: fewer blocks than ranks per node.
comm::Buckets two_level_buckets(int64_t elements, int nodes, int ranks_per_node,
                                int64_t least_bytes);

// Bytes of a message to one peer for a full bucket.
int64_t message_bytes(const comm::Buckets& buckets, int world_size);

}  // namespace onebit::compress
