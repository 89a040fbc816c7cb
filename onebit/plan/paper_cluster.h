// A cluster that need not be there: equal hosts behind one switch, and what a bucket costs on its
// links.
#pragma once

#include <cstdint>

namespace onebit::plan {

struct PaperCluster {
  int hosts = 1;
  int ranks_a_host = 1;              // ranks that run on each
  int host_parts = 1;                // a rank has one of so many equal parts of a host
  double bandwidth = 0;              // bytes a second of a host's link, in each direction at once
  double latency = 0;                // seconds of a small message between two hosts
  double copy_bytes_a_second = 1e9;  // of a host's memory, read and written

  int ranks() const { return hosts * ranks_a_host; }
};

// Of the rate of a link, what TCP leaves for data (docs/network.md: 96 % of 100 Mb/s, 94 % of 10
// Gb/s).
inline constexpr double kLinkShare = 0.95;
// The time that a message takes on its rank besides its bytes, of sending and receiving one.
inline constexpr double kMessageSeconds = 5e-6;
// The largest part of a message (comm/mpi_communicator.cc).
inline constexpr double kPieceBytes = 60 << 10;

// Seconds of one bucket of `bucket_bytes`, all ranks' chunks together, in a steady stream of
// buckets: two collectives in which every rank sends a chunk to every other one, those of a host
// over one link. The collectives of neighbouring buckets are on their way at once, so a message's
// latency counts only where it is longer than all that a bucket sends. 0 for a single rank.
double bucket_wire_seconds(const PaperCluster& cluster, double bucket_bytes);

// What a rank sends to other hosts of a bucket, and receives from them. 0 for a single host.
double bucket_sent_bytes(const PaperCluster& cluster, double bucket_bytes);

// Seconds of a small collective: as many messages one after the other as ranks can be halved.
double agreement_seconds(const PaperCluster& cluster);

}  // namespace onebit::plan
