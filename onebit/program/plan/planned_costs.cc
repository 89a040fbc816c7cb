#include "onebit/program/plan/planned_costs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "onebit/exchange/compress/wire_layout.h"
#include "onebit/exchange/transport/mpi_communicator.h"

namespace onebit::plan {

namespace {

using costs::ByKind;
using costs::PassParts;

PassParts count(Context& context, const pretrain::PretrainingConfig& config, DType type,
                int64_t layers) {
  model::EncoderConfig model = config.model;
  model.layers = layers;
  const costs::PassShape shape{.model = model,
                               .heads = config.data.heads(),
                               .memory = config.memory,
                               .sequences = 1,
                               .length = config.data.pairs.sequence_length,
                               .masked = config.limits(1).labelled};
  return costs::observe_pass(context, shape, type, 0).work;
}

// The layer of a parameter's name, or nothing for heads and embeddings.
std::optional<int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "bert.encoder.layer.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t layer = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), layer).ec != std::errc()) {
    return std::nullopt;
  }
  return layer;
}

// Maps the offset at which each parameter begins in the flat buffer to the time when its gradient
// is ready. Every element belongs to the parameter before it, so that the ranges cover the buffer.
template <typename Place>
std::map<int64_t, double> ready_from(const ParameterTable& table, const Place& seconds_of) {
  std::map<int64_t, double> from;
  for (const ParameterEntry& entry : table.entries()) {
    from[entry.offset_elements] = seconds_of(entry.name);
  }
  return from;
}

}  // namespace

RecipeWork count_work(Context& context, const pretrain::PretrainingConfig& config, DType type) {
  // The further layers are of one or two kinds: with a window, and without.
  const int64_t period = config.model.choices.full_attention_every;
  const int64_t layers = config.model.layers, full = (layers - 1) / period;
  const PassParts one = count(context, config, type, 1);
  RecipeWork work{.one_layer = one, .layer_forward = {}, .layer_backward = {}};
  if (layers == 1) return work;
  const auto further = static_cast<double>(layers - 1);
  const double computed = config.drop().mean_layers(0, config.engine.run.steps) - 1;
  const auto add = [&](int64_t alike, const PassParts& with, const PassParts& without) {
    const double share = computed / further * static_cast<double>(alike) / further;
    work.layer_forward = work.layer_forward + share * (with.forward - without.forward);
    work.layer_backward = work.layer_backward + share * (with.encoder - without.encoder);
  };
  const PassParts two = count(context, config, type, 2);
  if (period == 1) {
    add(layers - 1, two, one);
    return work;
  }
  add(layers - 1 - full, two, one);
  add(full, count(context, config, type, 1 + period), count(context, config, type, period));
  return work;
}

costs::PassTimes pass_times(const RecipeWork& work, const costs::ComputingCosts& machine,
                            const ParameterTable& table, int64_t sequences, int host_parts) {
  const double share = static_cast<double>(sequences * host_parts);
  const auto seconds = [share](const ByKind& done, const ByKind& rates) {
    return share * (done / rates).sum();
  };
  int64_t layers = 1;
  for (const ParameterEntry& entry : table.entries()) {
    layers = std::max(layers, layer_of(entry.name).value_or(0) + 1);
  }
  const auto more = static_cast<double>(layers - 1);
  const double heads = seconds(work.one_layer.heads, machine.backward);
  const double last_layer = seconds(work.one_layer.encoder, machine.backward);
  const double layer = seconds(work.layer_backward, machine.backward);
  const double embeddings = seconds(work.one_layer.embeddings, machine.backward);
  costs::PassTimes pass{.forward_seconds = seconds(work.one_layer.forward, machine.forward) +
                                           more * seconds(work.layer_forward, machine.forward),
                        .backward_seconds = heads + last_layer + more * layer + embeddings,
                        .ready = {}};
  const auto ready_at = [&](std::string_view name) {
    if (name.starts_with("bert.embeddings") || name.starts_with("bert.encoder.relative")) {
      return pass.backward_seconds;
    }
    const auto index = layer_of(name);
    if (!index) return heads;
    return heads + last_layer + static_cast<double>(layers - 1 - *index) * layer;
  };
  int64_t end = table.size_elements();
  const std::map<int64_t, double> from = ready_from(table, ready_at);
  for (auto entry = from.rbegin(); entry != from.rend(); ++entry) {
    pass.ready.push_back({{entry->first, end}, entry->second});
    end = entry->first;
  }
  return pass;
}

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
  const auto piece = static_cast<double>(transport::piece_bytes(static_cast<size_t>(chunk_bytes)));
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
