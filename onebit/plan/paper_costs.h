// The costs of a step on a cluster on paper, in the form in which a run measures its own
// (training/step_costs.h), so that both are joined by the same prediction.
#pragma once

#include "onebit/params/table.h"
#include "onebit/plan/paper_cluster.h"
#include "onebit/plan/recipe_work.h"
#include "onebit/training/machine_costs.h"
#include "onebit/training/step_costs.h"

namespace onebit::plan {

// A recipe as far as it costs time, and the machine that each host is.
struct PlannedStep {
  const RecipeWork& work;
  const training::MachineCosts& machine;
  const params::Table& table;  // of the model; need not be allocated
  const engine::EngineConfig& config;
};

// What TCP takes of a rank's processor for a byte that it sends and one that it receives, in times
// of an element that it packs and averages in bf16: steps at 16 bits were 1.0 to 1.2 ns a byte
// longer than the rest of their costs, on cores that take 1.2 ns (Zen 4) and 1.9 ns (Zen 3) an
// element.
inline constexpr double kTcpElements = 0.7;

// Of the products of a recipe on this machine: those in bf16 where it has them, else in f32.
DType product_type(const training::MachineCosts& machine, DType compute);

// With gradients averaged as `wire`, in micro-batches of `micro_batch`.
training::StepCosts paper_costs(const PlannedStep& step, const PaperCluster& cluster, DType wire,
                                int64_t micro_batch, const training::ExchangeBuckets& buckets);

}  // namespace onebit::plan
