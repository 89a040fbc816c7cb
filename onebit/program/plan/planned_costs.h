// The costs of a step on a planned cluster, in the form in which a run measures its own
// (costs/step_costs.h), so that the same prediction applies to both.
#pragma once

#include <cstdint>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/training/costs/machine_costs.h"
#include "onebit/training/costs/observed_pass.h"
#include "onebit/training/costs/step_costs.h"
#include "onebit/training/costs/step_prediction.h"

namespace onebit::plan {

// The operations of a recipe's pass, and the time that they take on a measured machine.

// The work for one full sequence of the recipe.
struct RecipeWork {
  costs::PassParts one_layer;  // of the model with a single layer
  // The work that each further layer adds, averaged over the steps of the run if passes leave
  // layers out. The last layer has fewer rows: only those that heads read.
  costs::ByKind layer_forward, layer_backward;
};

// Counts the operations of models of a few layers by running them (kernels/device_switch.h). Layers
// after the first do the same work, or are of two kinds where some have a window. `type` is the
// type of the matrix products, for which rates will be given. Runs a sequence two to four times.
// Nothing is timed.
RecipeWork count_work(Context& context, const pretrain::PretrainingConfig& config, DType type);

// The times of one pass over `sequences` on a rank that has one of `host_parts` equal parts of the
// machine. `table` describes the whole model and need not be allocated. A layer's gradients are
// ready when its backward pass has ended. The heads' are ready first, the embeddings' last.
costs::PassTimes pass_times(const RecipeWork& work, const costs::ComputingCosts& machine,
                            const ParameterTable& table, int64_t sequences, int host_parts);

// A planned cluster, which need not exist: equal hosts behind one switch, and the cost of a bucket
// on its links.
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

// The parts of a recipe that cost time, and the machine of each host.
struct PlannedStep {
  const RecipeWork& work;
  const costs::MachineCosts& machine;
  const ParameterTable& table;  // of the model, need not be allocated
  const engine::EngineConfig& config;
};

// The processor time of TCP on a rank for one byte sent and one received, relative to the time to
// pack and average one element in bf16. Measured: steps with 16-bit averages took 1.0 to 1.2 ns per
// byte longer than the rest of their costs, on cores that take 1.2 ns (Zen 4) and 1.9 ns (Zen 3)
// per element.
inline constexpr double kTcpElements = 0.7;

// The type of a recipe's matrix products on this machine: bf16 if both have it, otherwise f32.
DType product_type(const costs::MachineCosts& machine, DType compute);

// The costs with gradients averaged as `wire`, in micro-batches of `micro_batch` sequences.
costs::StepCosts planned_costs(const PlannedStep& step, const PlannedCluster& cluster, DType wire,
                               int64_t micro_batch, const costs::ExchangeBuckets& buckets);

}  // namespace onebit::plan
