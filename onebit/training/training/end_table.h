// The table that is printed once when a run ends.
#pragma once

#include "onebit/training/training/session.h"
#include "onebit/training/training/start_table.h"
#include "onebit/training/training/training_log.h"

namespace onebit::training {

// Steps, time and its parts, measured and expected time of a step and of all steps, memory, results
// of the task, bytes sent. `totals` are those of this process: if the run was resumed, each row
// states whether it covers the whole run.
Rows end_table(const TrainingTotals& totals, const StartTable& start, Session& run);

// "1.23 s (the median of 40), expected 1.20 s" for each phase that had steps.
Rows step_rows(const TrainingTotals& totals, const costs::StepForecast& expected);

}  // namespace onebit::training
