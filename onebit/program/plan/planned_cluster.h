// A planned cluster, which need not exist: equal hosts behind one switch, and the cost of a bucket
// on its links.
#pragma once

#include <cstdint>

namespace onebit::plan {

struct PlannedCluster {
  int hosts = 1;
  int ranks_per_host = 1;  // ranks that run on each
  int host_parts = 1;      // equal parts of a host, of which a rank has one
  double bandwidth = 0;    // bytes per second of a host's link, in each direction at once
  double latency = 0;      // seconds of a small message between two hosts
  double copy_bytes_per_second = 1e9;  // rate of a host's memory, reads plus writes

  int ranks() const { return hosts * ranks_per_host; }
};

// The share of a link's rate that TCP leaves for data (docs/network.md: 96 % of 100 Mb/s, 94 % of
// 10 Gb/s).
inline constexpr double kLinkShare = 0.95;
// The fixed time of a message on its rank, for sending and receiving one, in addition to its bytes.
inline constexpr double kMessageSeconds = 5e-6;

// Wire time of one bucket of `bucket_bytes` (the chunks of all ranks) in a steady stream of
// buckets: two collectives in which every rank sends a chunk to every other rank, with one link per
// host. The collectives of neighbouring buckets overlap, so the latency of a message counts only if
// it is longer than everything that a bucket sends. 0 for a single rank.
double bucket_wire_seconds(const PlannedCluster& cluster, double bucket_bytes);

// The bytes of a bucket that a rank sends to other hosts, and also receives from them. 0 for a
// single host.
double bucket_sent_bytes(const PlannedCluster& cluster, double bucket_bytes);

// Time of a small collective: ceil(log2(ranks)) messages in sequence. 0 for a single host.
double agreement_seconds(const PlannedCluster& cluster);

}  // namespace onebit::plan
