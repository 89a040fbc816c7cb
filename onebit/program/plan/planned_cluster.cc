#include "onebit/program/plan/planned_cluster.h"

#include <algorithm>
#include <cmath>

#include "onebit/exchange/comm/message_pieces.h"

namespace onebit::plan {
namespace {

constexpr double kCollectives = 2;  // per bucket: all-to-all of chunks, all-gather of results
// Memory traffic per byte of a message in shared memory: it is copied in and copied out, and each
// copy reads and writes.
constexpr double kMovesInMemory = 4;

}  // namespace

double bucket_wire_seconds(const PlannedCluster& cluster, double bucket_bytes) {
  const double ranks = cluster.ranks(), here = cluster.ranks_per_host;
  if (cluster.ranks() == 1) return 0;
  const double chunk_bytes = bucket_bytes / ranks;
  const double host_bytes =
      kCollectives * here * chunk_bytes;  // from all ranks of a host to one rank elsewhere
  const double link = host_bytes * (ranks - here) / (kLinkShare * cluster.bandwidth);
  const double memory = kMovesInMemory * host_bytes * (here - 1) / cluster.copy_bytes_per_second;
  const auto piece = static_cast<double>(comm::piece_bytes(static_cast<size_t>(chunk_bytes)));
  const double pieces = std::max(1.0, std::ceil(chunk_bytes / piece));
  const double messages = kCollectives * (ranks - 1) * pieces * kMessageSeconds;
  const double latency = cluster.hosts > 1 ? cluster.latency : 0;
  return std::max({link, memory, messages, latency});
}

double bucket_sent_bytes(const PlannedCluster& cluster, double bucket_bytes) {
  const double elsewhere = cluster.ranks() - cluster.ranks_per_host;
  return kCollectives * bucket_bytes / cluster.ranks() * elsewhere;
}

double agreement_seconds(const PlannedCluster& cluster) {
  if (cluster.hosts == 1) return 0;
  return std::ceil(std::log2(static_cast<double>(cluster.ranks()))) * cluster.latency;
}

}  // namespace onebit::plan
