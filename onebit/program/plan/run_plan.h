// A plan of a pre-training run: memory, steps, time and energy of a recipe on a planned cluster,
// for every way in which ranks can exchange gradients, and for other numbers of ranks. docs/plan.md
// states the rules and their assumptions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/program/plan/planned_costs.h"
#include "onebit/training/costs/step_costs.h"

namespace onebit::plan {

// A way to exchange gradients. Lists start with the simplest.
struct Choice {
  std::string name;  // "f32 averages", "1-bit Adam", ...
  bool of_recipe = false;
  DType wire = DType::kF32;  // type of averages
  std::shared_ptr<const optim::OptimizerRecipe> optimizer;
};

// The seconds of a step of one kind. They add up to `all`.
struct StepSeconds {
  double all = 0, forward = 0, backward = 0, optimizer = 0;
  // The time that the exchange adds: its work on the processor, the wire time that extends beyond
  // the backward pass, and agreements.
  double exchange = 0;
};

struct PlannedRun {
  int64_t memory_bytes = 0;  // per rank
  bool fits = true;          // all ranks of a host fit into its memory
  costs::RunForecast run;
  StepSeconds dense, compressed, local;  // zeros where the run has no such steps
  double waiting_share = 0;              // share of a dense step spent waiting for the network
  double samples_per_second = 0;
  double kilowatt_hours = 0;
};

struct PlannedRanks {
  PlannedCluster cluster;
  std::string cannot;            // why the recipe cannot run on so many ranks. Otherwise empty
  std::vector<PlannedRun> runs;  // one for each choice
};

struct Advice {
  size_t choice = 0;
  bool out_of_reach = false;
  std::string sentence;
};

struct PlanRequest {
  PlannedCluster cluster;
  double watts_per_host = 0;
};

struct RunPlan {
  std::string recipe;                              // its path
  int64_t parameters = 0, steps = 0, samples = 0;  // samples per step
  engine::BatchSizes batch;                        // on the requested ranks
  engine::BatchSizes given_batch = {};             // as in the recipe
  int64_t sequence_length = 0, vocabulary = 0;
  // Layers of the model, and the mean number that a pass computes: fewer if passes leave layers
  // out.
  int64_t layers = 0;
  double computed_layers = 0;
  double watts_per_host = 0;
  costs::MachineCosts machine;
  std::vector<Choice> choices;
  PlannedRanks asked;
  std::vector<PlannedRanks> others;  // 1 to 1,024 ranks
  Advice advice;
};

// `context` runs the recipe's passes to count their work. Errors: the batch does not divide among
// the ranks, or a host has fewer threads than ranks.
RunPlan make_plan(Context& context, const pretrain::PretrainingConfig& config,
                  const costs::MachineCosts& machine, const PlanRequest& request);

}  // namespace onebit::plan
