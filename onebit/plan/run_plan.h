// A plan of a pre-training run: memory, steps, time and energy of a recipe on a cluster on paper,
// for every way in which ranks can exchange gradients, and for other numbers of ranks. docs/plan.md
// has the rules and what they assume.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/plan/paper_costs.h"
#include "onebit/tasks/pretraining_config.h"
#include "onebit/training/run_forecast.h"

namespace onebit::plan {

// A way to exchange, from the simplest one on.
struct Choice {
  std::string name;  // "f32 averages", "1-bit Adam", ...
  bool of_recipe = false;
  DType wire = DType::kF32;  // of averages
  std::shared_ptr<const optim::OptimizerRecipe> optimizer;
};

// The seconds of a step of one kind; they add up to `all`.
struct StepSeconds {
  double all = 0, forward = 0, backward = 0, optimizer = 0;
  // What the exchange adds: its work on the processor, the wire as far as it reaches beyond the
  // backward pass, agreements.
  double exchange = 0;
};

struct PlannedRun {
  int64_t memory_bytes = 0;  // of a rank
  bool fits = true;          // all ranks of a host into its memory
  training::RunForecast run;
  StepSeconds dense, compressed, local;  // zeros where the run has no such steps
  double waiting_share = 0;              // of a dense step, for the network
  double samples_a_second = 0;
  double kilowatt_hours = 0;
};

struct PlannedRanks {
  PaperCluster cluster;
  std::string cannot;            // why the recipe does not run on so many; else empty
  std::vector<PlannedRun> runs;  // one for each choice
};

struct Advice {
  size_t choice = 0;
  bool out_of_reach = false;
  std::string sentence;
};

struct PlanRequest {
  PaperCluster cluster;
  double watts_a_host = 0;
};

struct RunPlan {
  std::string recipe;                              // its path
  int64_t parameters = 0, steps = 0, samples = 0;  // samples of a step
  engine::BatchSizes batch;                        // on the ranks that are asked for
  engine::BatchSizes given_batch = {};             // as the recipe has it
  int64_t sequence_length = 0, vocabulary = 0;
  // Of the model, and in the mean of a pass, fewer where passes leave layers out.
  int64_t layers = 0;
  double computed_layers = 0;
  double watts_a_host = 0;
  training::MachineCosts machine;
  std::vector<Choice> choices;
  PlannedRanks asked;
  std::vector<PlannedRanks> others;  // 1 to 1,024 ranks
  Advice advice;
};

// `context` counts what the recipe's passes do. Error: the batch does not divide among the ranks,
// or a host has fewer threads than ranks.
RunPlan make_plan(Context& context, const tasks::PretrainingConfig& config,
                  const training::MachineCosts& machine, const PlanRequest& request);

}  // namespace onebit::plan
