// The tables that are printed once before the first step of a run and once at its end.
#pragma once

#include "onebit/training/costs/step_costs.h"
#include "onebit/training/training/session.h"
#include "onebit/training/training/training_log.h"

namespace onebit::training {

struct StartTable {
  Rows rows;
  costs::StepForecast expected;
  costs::RunForecast run;       // of the remaining steps
  int64_t completed_steps = 0;  // before them
  int world_size = 1;
  int64_t memory_bytes = 0;  // of a rank, as planned
};

// Model, parameters, memory, initial values, data, ranks, optimizer and rate, automatic decisions,
// and the expected time of a step with and without compression and of the whole run, from short
// measurements of link and compute (step_costs.h), which affect nothing else. Collective.
StartTable start_table(Context& context, Session& run, comm::Communicator& communicator);

// A row that says why attention on a CUDA device uses the kernel without tensor cores, and how to
// change that. No row where it uses them, and on a CPU.
Rows attention_rows(Device device, DType compute, int64_t head_size);

// The table that is printed once when a run ends.

// Steps, time and its parts, measured and expected time of a step and of all steps, memory, results
// of the task, bytes sent. `totals` belong to this process: if the run was resumed, each row states
// whether it covers the whole run.
Rows end_table(const TrainingTotals& totals, const StartTable& start, Session& run);

// "1.23 s (the median of 40), expected 1.20 s" for each phase that had steps.
Rows step_rows(const TrainingTotals& totals, const costs::StepForecast& expected);

}  // namespace onebit::training
