// The costs of a step on a planned cluster, in the form in which a run measures its own
// (costs/step_costs.h), so that the same prediction applies to both.
#pragma once

#include "onebit/math/tensor/parameter_table.h"
#include "onebit/program/plan/planned_cluster.h"
#include "onebit/program/plan/recipe_work.h"
#include "onebit/training/costs/machine_costs.h"
#include "onebit/training/costs/step_costs.h"

namespace onebit::plan {

// The parts of a recipe that cost time, and the machine of each host.
struct PlannedStep {
  const RecipeWork& work;
  const costs::MachineCosts& machine;
  const ParameterTable& table;  // of the model; need not be allocated
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
