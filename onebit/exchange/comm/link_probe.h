// Measures the network between the ranks for the prediction printed at start-up. The traffic is
// as in training: buckets, each with its two collectives, pipelined as in BucketPipeline.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"

namespace onebit::comm {

// A number of buckets sent back to back, and the time of the slowest rank.
struct Stream {
  double buckets = 0;
  double seconds = 0;
  double processor_seconds = 0;  // the part of `seconds` spent on the processor
};

// Seconds that one more bucket takes in a steady stream: the slope through the last three streams
// (fewer if there are fewer), each longer than the one before. One-time costs (connecting, latency)
// and gains (the burst that a traffic shaper lets through, socket buffers) are in the offset, not
// in the slope.
double seconds_per_bucket(std::span<const Stream> streams);

struct StreamSpeed {
  double seconds_per_bucket = 0;
  // Processor time for a bucket on the rank that needs the most: copying to and from the network,
  // and polling for arrived data.
  double processor_seconds_per_bucket = 0;
  double bytes_per_second = 0;  // sent by each rank (the mean) while all send to all
  int64_t sent_bytes = 0;       // by each rank, in the longest stream,
  double seconds = 0;           // which took this long
};

struct ProbeLimits {
  double seconds = 0.5;        // streams get longer until about this much time is spent,
  double at_most_seconds = 4;  // or this much if buckets are slow: the slope needs three streams
};

// Measures streams of buckets of `bucket_bytes` on the wire, all ranks' chunks together. If one
// such bucket would take a large part of the time, smaller ones are sent and the figures scaled.
// Collective. Every rank ends with the same figures. For a single rank the times are 0.
StreamSpeed probe_stream(Context& context, Communicator& communicator, int64_t bucket_bytes,
                         const ProbeLimits& limits = {});

// Seconds of one small collective, or 0 for a single rank. Collective.
double probe_latency(Communicator& communicator);

}  // namespace onebit::comm
