#include "onebit/program/plan/planned_costs.h"

#include <algorithm>
#include <cmath>

#include "onebit/exchange/comm/message_pieces.h"
#include "onebit/exchange/compress/wire_layout.h"

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

namespace {

double seconds_per_element(const costs::ExchangingCosts& costs, DType wire) {
  switch (wire) {
    case DType::kBF16:
      return costs.bf16;
    case DType::kF16:
      return costs.f16;
    default:
      return costs.f32;
  }
}

void add_exchanges(costs::StepCosts& costs, const costs::ExchangingCosts& exchanging,
                   const PlannedCluster& cluster, DType wire,
                   const costs::ExchangeBuckets& buckets) {
  const int64_t dense = buckets.dense.max_elements(),
                compressed = buckets.compressed.max_elements();
  const auto dense_bytes = static_cast<double>(dense * size_bytes_of(wire));
  const auto compressed_bytes = static_cast<double>(compress::chunk_bytes(compressed));
  const auto tcp_seconds = [&](double bytes) {
    return kTcpElements * exchanging.bf16 * bucket_sent_bytes(cluster, bytes);
  };
  costs.latency_seconds = agreement_seconds(cluster);
  costs.dense = {
      .wire_seconds = bucket_wire_seconds(cluster, dense_bytes),
      .processor_seconds = seconds_per_element(exchanging, wire) * static_cast<double>(dense) +
                           tcp_seconds(dense_bytes)};
  costs.local.processor_seconds = exchanging.one_bit_passes * static_cast<double>(compressed);
  costs.compressed = {.wire_seconds = bucket_wire_seconds(cluster, compressed_bytes),
                      .processor_seconds = costs.local.processor_seconds +
                                           exchanging.one_bit * static_cast<double>(compressed) +
                                           tcp_seconds(compressed_bytes)};
}

}  // namespace

DType product_type(const costs::MachineCosts& machine, DType compute) {
  return compute == DType::kBF16 && machine.bf16 ? DType::kBF16 : DType::kF32;
}

costs::StepCosts planned_costs(const PlannedStep& step, const PlannedCluster& cluster, DType wire,
                               int64_t micro_batch, const costs::ExchangeBuckets& buckets) {
  const costs::MachineCosts& machine = step.machine;
  const bool native = product_type(machine, step.config.compute) == DType::kBF16;
  const costs::ComputingCosts& computing = native ? *machine.bf16 : machine.f32;
  const double elements =
      static_cast<double>(step.table.size_elements()) * static_cast<double>(cluster.host_parts);
  costs::StepCosts costs{
      .pass = pass_times(step.work, computing, step.table, micro_batch, cluster.host_parts),
      .update_seconds = computing.update_seconds * elements,
      .compressed_update_seconds = computing.compressed_update_seconds * elements};
  if (cluster.ranks() > 1) add_exchanges(costs, machine.exchanging, cluster, wire, buckets);
  return costs;
}

}  // namespace onebit::plan
